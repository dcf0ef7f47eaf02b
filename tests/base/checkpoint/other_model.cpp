// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/other_model.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/onnx/message.hpp"
#include "edl/core/durable_file.hpp"

namespace other_model_test {

using namespace edl::checkpoint;
using edl::weight_name, edl::weight_order;
using texts = std::vector<std::string>;

namespace {

/// conv/kernel (2, 2, 3, 4), dense/kernel (3, 2), dense/bias (2).
edl::parameter_layout network() {
  return {
      .variables = {{"conv/kernel", {2, 2, 3, 4}, 0}, {"dense/kernel", {3, 2}, 48}, {"dense/bias", {2}, 54}},
      .parameters = 56,
      .tables = {}};
}

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

void write(std::string const& path, std::vector<tensor_source> const& tensors) {
  edl::durable_file file(path);
  write_safetensors(file, tensors);
  file.commit();
}

edl::bytes bytes_of(std::vector<float> const& values) { return std::as_bytes(edl::view<float>(values)); }

}  // namespace

TEST_CASE("what fits of a file is taken, and the rest stays and is named with its shapes") {
  scratch const dir;
  auto const values = counted(6);
  write(dir / "m.safetensors", {{.name = "dense/kernel", .dims = {3, 2}, .data = bytes_of(values)},
                                {.name = "dense/bias", .dims = {3}, .data = bytes_of(counted(3)).first(12)},
                                {.name = "head", .dims = {1}, .data = bytes_of(values).first(4)}});
  other_model const from(dir / "m.safetensors");
  auto const match = from.match(network(), {});
  CHECK(match.found == texts{"dense/kernel"});
  CHECK(match.missing == texts{"conv/kernel"});
  CHECK(match.other_shape == texts{"dense/bias (F32 [3] there, F32 [2] here)"});
  CHECK_FALSE(match.whole());
  CHECK(
      match.describe() ==
      "found: 1 (dense/kernel); not found: 1 (conv/kernel); of another shape: 1 (dense/bias (F32 [3] there, "
      "F32 [2] here))");
  std::vector<float> all(56, -1);
  from.read(network(), {}, 0, all);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == (i < 48 || i >= 54 ? -1 : float(i - 47)));
  // A server has a part of it, that ends amid a variable.
  std::vector<float> part(4, -1);
  from.read(network(), {}, 46, part);
  CHECK(part == std::vector<float>{-1, -1, 1, 2});
}

TEST_CASE("several tensors make one variable, in the order of their names") {
  scratch const dir;
  std::vector<float> const of_q{1, 2, 3}, of_v{4, 5, 6}, narrow{7}, wide{8}, long_one{9, 10};
  weight_name const names[] = {{"{q,v}.weight", "dense/kernel", weight_order::pytorch},
                               {"{q,v}.bias", "dense/bias", weight_order::pytorch}};
  write(dir / "m.safetensors", {{.name = "q.weight", .dims = {1, 3}, .data = bytes_of(of_q)},
                                {.name = "v.weight", .dims = {1, 3}, .data = bytes_of(of_v)},
                                {.name = "q.bias", .dims = {1}, .data = bytes_of(narrow)},
                                {.name = "v.bias", .dims = {1}, .data = bytes_of(wide)}});
  other_model const from(dir / "m.safetensors");
  CHECK(from.match(network(), names).found == texts{"dense/kernel", "dense/bias"});
  std::vector<float> all(56, -1);
  from.read(network(), names, 0, all);
  CHECK(std::vector<float>(all.begin() + 48, all.end()) == std::vector<float>{1, 4, 2, 5, 3, 6, 7, 8});
  // One is missing, too long, of another rank or of another type.
  write(dir / "n.safetensors", {{.name = "q.weight", .dims = {1, 3}, .data = bytes_of(of_q)},
                                {.name = "q.bias", .dims = {1}, .data = bytes_of(narrow)},
                                {.name = "v.bias", .dims = {2}, .data = bytes_of(long_one)}});
  auto const fewer = other_model(dir / "n.safetensors").match(network(), names);
  CHECK(fewer.missing == texts{"conv/kernel", "dense/kernel ('{q,v}.weight')"});
  CHECK(fewer.other_shape == texts{"dense/bias ('q.bias') (F32 [3] there, F32 [2] here)"});
  write(dir / "o.safetensors",
        {{.name = "q.weight", .dims = {1, 3}, .data = bytes_of(of_q)},
         {.name = "v.weight", .dims = {3}, .data = bytes_of(of_v)},
         {.name = "q.bias", .dtype = "BF16", .dims = {1}, .data = bytes_of(narrow).first(2)},
         {.name = "v.bias", .dims = {2}, .data = bytes_of(long_one)}});
  CHECK(other_model(dir / "o.safetensors").match(network(), names).other_shape ==
        texts{"dense/kernel ('v.weight') (F32 [3] there, F32 [2, 3] here)",
              "dense/bias ('v.bias') (BF16 and F32 [2] there, F32 [2] here)"});
}

TEST_CASE("another type is another shape") {
  scratch const dir;
  std::vector<float> const values(4);
  write(dir / "m.safetensors",
        {{.name = "dense/bias", .dtype = "F64", .dims = {2}, .data = bytes_of(values)},
         {.name = "dense/kernel", .dtype = "I16", .dims = {3, 2}, .data = bytes_of(values).first(12)}});
  other_model const from(dir / "m.safetensors");
  CHECK(from.match(network(), {}).other_shape == texts{"dense/kernel (I16 [3, 2] there, F32 [3, 2] here)",
                                                       "dense/bias (F64 [2] there, F32 [2] here)"});
  std::vector<float> all(56, -1);
  from.read(network(), {}, 0, all);
  CHECK(all == std::vector<float>(56, -1));
}

TEST_CASE("weights in half precision are widened, and turned as others are") {
  scratch const dir;
  // fc.weight (2, 3) is 10 u + i, in F16, and the bias 7, 8 in BF16.
  std::vector<std::uint16_t> const kernel{0x0000, 0x3c00, 0x4000, 0x4900, 0x4980, 0x4a00},
      bias{0x40e0, 0x4100};
  auto const halves = [](std::vector<std::uint16_t> const& of) { return std::as_bytes(std::span(of)); };
  write(dir / "m.safetensors", {{.name = "fc.weight", .dtype = "F16", .dims = {2, 3}, .data = halves(kernel)},
                                {.name = "dense/bias", .dtype = "BF16", .dims = {2}, .data = halves(bias)}});
  weight_name const names[] = {{"fc.weight", "dense/kernel", weight_order::pytorch}};
  other_model const from(dir / "m.safetensors");
  CHECK(from.match(network(), names).found == texts{"dense/kernel", "dense/bias"});
  std::vector<float> all(56, -1);
  from.read(network(), names, 0, all);
  CHECK(std::vector<float>(all.begin() + 48, all.end()) == std::vector<float>{0, 10, 1, 11, 2, 12, 7, 8});
  // A server's part begins and ends amid variables.
  std::vector<float> part(4, -1);
  from.read(network(), names, 51, part);
  CHECK(part == std::vector<float>{11, 2, 12, 7});
}

TEST_CASE("weights in PyTorch's layout are found by their names and turned") {
  scratch const dir;
  // conv (filters 4, channels 3, height 2, width 2), linear (units 2, inputs 3); a number says where it is.
  std::vector<float> conv, linear;
  for (int f = 0; f < 4; ++f)
    for (int c = 0; c < 3; ++c)
      for (int h = 0; h < 2; ++h)
        for (int w = 0; w < 2; ++w) conv.push_back(float(1000 * f + 100 * c + 10 * h + w));
  for (int u = 0; u < 2; ++u)
    for (int i = 0; i < 3; ++i) linear.push_back(float(10 * u + i));
  std::vector<float> const bias{7, 8};
  write(dir / "t.safetensors", {{.name = "features.0.weight", .dims = {4, 3, 2, 2}, .data = bytes_of(conv)},
                                {.name = "fc.weight", .dims = {2, 3}, .data = bytes_of(linear)},
                                {.name = "fc.bias", .dims = {2}, .data = bytes_of(bias)}});
  static constexpr weight_name names[] = {{"features.0.weight", "conv/kernel", weight_order::pytorch},
                                          {"fc.weight", "dense/kernel", weight_order::pytorch},
                                          {"fc.bias", "dense/bias", weight_order::pytorch}};
  other_model const from(dir / "t.safetensors");
  CHECK(from.match(network(), names).whole());
  CHECK(from.match(network(), {}).found.empty());
  std::vector<float> all(56);
  from.read(network(), names, 0, all);
  std::size_t at = 0;
  for (int h = 0; h < 2; ++h)
    for (int w = 0; w < 2; ++w)
      for (int c = 0; c < 3; ++c)
        for (int f = 0; f < 4; ++f) CHECK(all[at++] == float(1000 * f + 100 * c + 10 * h + w));
  for (int i = 0; i < 3; ++i)
    for (int u = 0; u < 2; ++u) CHECK(all[at++] == float(10 * u + i));
  CHECK(all[54] == 7);
  CHECK(all[55] == 8);
  // Without the order the shapes differ, and both names are told.
  weight_name const plain[] = {{"fc.weight", "dense/kernel"}};
  CHECK(from.match(network(), plain).other_shape ==
        texts{"dense/kernel ('fc.weight') (F32 [2, 3] there, F32 [3, 2] here)"});
  weight_name const none[] = {{"fc2.weight", "dense/kernel"}};
  CHECK(from.match(network(), none).missing ==
        texts{"conv/kernel", "dense/kernel ('fc2.weight')", "dense/bias"});
}

TEST_CASE("a name of no variable, and one that stands twice, are refused") {
  weight_name const wrong[] = {{"fc.weight", "dense/kernal"}};
  CHECK(complaint([&] { check_weight_names(network(), wrong); }) ==
        "weight_names of the model: it has no variable 'dense/kernal'; did you mean 'dense/kernel'?");
  weight_name const twice[] = {{"a", "dense/bias"}, {"b", "dense/bias"}};
  CHECK(complaint([&] { check_weight_names(network(), twice); }) ==
        "weight_names of the model: variable 'dense/bias' occurs twice, as 'a' and 'b'");
}

TEST_CASE("one name stands for several, with braces on both sides") {
  edl::parameter_layout layout;
  for (char const* const name : {"s1/conv/k", "s1/conv_1/k", "s2/conv/k", "s2/conv_1/k"}) {
    layout.variables.push_back({.name = name, .dims = {2}, .offset = layout.parameters});
    layout.parameters += 2;
  }
  scratch const dir;
  auto const eight = counted(8);
  auto const part = [&](std::size_t from, std::size_t n) {
    return std::as_bytes(edl::view<float>(eight).subspan(from, n));
  };
  write(dir / "t.safetensors", {{.name = "s.a.c1.q", .dims = {1}, .data = part(0, 1)},
                                {.name = "s.a.c1.v", .dims = {1}, .data = part(1, 1)},
                                {.name = "s.a.c2.q", .dims = {1}, .data = part(2, 1)},
                                {.name = "s.a.c2.v", .dims = {1}, .data = part(3, 1)},
                                {.name = "s.b.c2.q", .dims = {1}, .data = part(4, 1)},
                                {.name = "s.b.c2.v", .dims = {1}, .data = part(5, 1)}});
  other_model const from(dir / "t.safetensors");
  static constexpr weight_name names[] = {{"s.{a,b}.c{1,2}.{q,v}", "s{1,2}/{conv,conv_1}/k"}};
  auto const match = from.match(layout, names);
  CHECK(match.found == texts{"s1/conv/k", "s1/conv_1/k", "s2/conv_1/k"});
  CHECK(match.missing == texts{"s2/conv/k ('s.b.c1.{q,v}')"});
  std::vector<float> all(8);
  from.read(layout, names, 0, all);
  CHECK(all == std::vector<float>{1, 2, 3, 4, 0, 0, 5, 6});
  auto const wrong = [&](weight_name const& w) {
    return complaint([&] { check_weight_names(layout, {&w, 1}); });
  };
  CHECK(wrong({"s.{a,b}.c1", "s{1,2,3}/conv/k"}).find("as many choices") != std::string::npos);
  CHECK(wrong({"s.a.c1", "s{1,2}/conv/k"}).find("as many choices") != std::string::npos);
  CHECK(wrong({"s.{a,b,c}.c1", "s{1,2,3}/conv/k"}).find("it has no variable 's3/conv/k'") !=
        std::string::npos);
}

TEST_CASE("one name stands for layers that repeat, by their numbers") {
  edl::parameter_layout layout;
  for (char const* const name : {"r/block/k", "r/block_1/k", "r/block_10/k", "r/block_x/k", "r/blocks/k"}) {
    layout.variables.push_back({.name = name, .dims = {1}, .offset = layout.parameters});
    ++layout.parameters;
  }
  scratch const dir;
  std::vector<float> const five{5}, six{6}, seven{7};
  write(dir / "t.safetensors", {{.name = "h.0.w", .dims = {1}, .data = bytes_of(five)},
                                {.name = "h.1.w", .dims = {1}, .data = bytes_of(six)},
                                {.name = "h.10.w", .dims = {1}, .data = bytes_of(seven)}});
  other_model const from(dir / "t.safetensors");
  static constexpr weight_name names[] = {{"h.#.w", "r/block_#/k"}};
  auto const match = from.match(layout, names);
  CHECK(match.found == texts{"r/block/k", "r/block_1/k", "r/block_10/k"});
  CHECK(match.missing == texts{"r/block_x/k", "r/blocks/k"});
  std::vector<float> all(5);
  from.read(layout, names, 0, all);
  CHECK(all == std::vector<float>{5, 6, 7, 0, 0});
  for (weight_name const wrong : {weight_name{"h.w", "r/block_#/k"}, weight_name{"h.#.w", "r/block/k"},
                                  weight_name{"h.#.w", "r/block#/k"}, weight_name{"h.#.#", "r/block_#/k_#"}})
    CHECK(complaint([&] { check_weight_names(layout, {&wrong, 1}); }).find("one '#' each") !=
          std::string::npos);
}

TEST_CASE("what fits of a checkpoint of several servers is taken") {
  scratch const dir;
  auto const theirs = network();
  auto const values = counted(theirs.size());
  std::string const path = checkpoint_path(dir.path(), 5);
  begin_checkpoint(path);
  manifest contents;
  contents.version = 5;
  contents.layout = layout_digest(theirs);
  for (std::uint32_t s = 0; s < 2; ++s) {
    edl::element_range const own = edl::partition(theirs.size(), 2, s);
    segment const whole{own, 5, {}};
    contents.files.push_back(write_part(path, theirs,
                                        {.server = s,
                                         .servers = 2,
                                         .version = 5,
                                         .elements = own,
                                         .variables = edl::view<float>(values).subspan(own.first, own.size()),
                                         .slot_names = {},
                                         .slots = {},
                                         .segments = {&whole, 1}}));
  }
  commit_checkpoint(path, contents);
  edl::parameter_layout const ours{
      .variables = {{"dense/kernel", {3, 2}, 0}, {"head/kernel", {2, 5}, 6}, {"dense/bias", {5}, 16}},
      .parameters = 21,
      .tables = {}};
  other_model const from(path);
  auto const match = from.match(ours, {});
  CHECK(match.found == texts{"dense/kernel"});
  CHECK(match.missing == texts{"head/kernel"});
  CHECK(match.other_shape == texts{"dense/bias (F32 [2] there, F32 [5] here)"});
  std::vector<float> all(21, -1);
  from.read(ours, {}, 0, all);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == (i < 6 ? float(49 + i) : -1));
}

TEST_CASE("rows of a table are there where name and width fit") {
  scratch const dir;
  std::vector<float> const rows(6);
  write(dir / "m.safetensors", {{.name = "tables/ads/embeddings", .dims = {2, 3}, .data = bytes_of(rows)}});
  other_model const from(dir / "m.safetensors");
  CHECK(from.has_rows({"ads", 3}));
  CHECK_FALSE(from.has_rows({"ads", 2}));
  CHECK_FALSE(from.has_rows({"users", 3}));
}

TEST_CASE("a checkpoint whose layout is none is refused, however large it claims to be") {
  scratch const dir;
  auto const theirs = network();
  auto const values = counted(theirs.size());
  std::string const path = checkpoint_path(dir.path(), 5);
  begin_checkpoint(path);
  segment const whole{{0, theirs.size()}, 5, {}};
  manifest contents;
  contents.layout = layout_digest(theirs);
  contents.files.push_back(write_part(path, theirs,
                                      {.elements = {0, theirs.size()},
                                       .variables = values,
                                       .slot_names = {},
                                       .slots = {},
                                       .segments = {&whole, 1}}));
  std::string const file = path + "/" + contents.files[0].name;
  auto const facts = safetensors_file(file).metadata();
  for (std::string const layout :
       {R"({})", R"([])", R"({"parameters":1,"state":0,"variables":7})",
        R"({"parameters":-1,"state":0,"variables":[]})", R"({"parameters":1,"state":0,"variables":[]})",
        R"({"parameters":4,"state":0,"variables":[["a",[4,-1]]]})",
        R"({"parameters":4,"state":0,"variables":[["a",[1,1,1,1,4]]]})",
        R"({"parameters":4,"state":0,"variables":[["a",[4294967296]]]})",
        R"({"parameters":0,"state":0,"variables":[["a",[2147483647,2147483647,2147483647,2147483647]]]})",
        R"({"parameters":18446744073709551615,"state":2,"variables":[["a",[1]]]})",
        R"({"parameters":1,"state":0,"variables":[["a",[1]]],"tables":[["t",-3]]})",
        R"({"parameters":2000000000,"state":0,"variables":[["a",[2000000000]]]})"}) {
    CAPTURE(layout);
    auto changed = facts;
    changed["layout"] = layout;
    edl::durable_file out(file);
    tensor_source const only{.name = "a", .dims = {56}, .data = bytes_of(values)};
    write_safetensors(out, {&only, 1}, changed);
    out.commit();
    contents.files[0].bytes = out.size(), contents.files[0].crc32 = out.crc32();
    commit_checkpoint(path, contents);
    CHECK(contains(complaint([&] { other_model{path}; }), path));
  }
}

TEST_CASE("weights of others' ONNX files are found by name and turned, as those of safetensors are") {
  scratch const dir;
  auto const tensor = [](std::string const& name, std::vector<std::int64_t> const& dims,
                         std::vector<float> const& values) {
    edl::onnx::message m;
    m.packed(1, dims).number(2, 1).text(8, name).packed(4, std::span(values));
    return m.bytes();
  };
  edl::onnx::message graph;
  graph.text(5, tensor("fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6})).text(5, tensor("fc.bias", {3}, {1, 2, 3}));
  {
    edl::durable_file file(dir / "m.onnx");
    file.write(edl::onnx::message().text(2, "pytorch").text(7, graph.bytes()).bytes());
    file.commit();
  }
  weight_name const names[] = {{"fc.weight", "dense/kernel", weight_order::pytorch},
                               {"fc.bias", "dense/bias"}};
  other_model const from(dir / "m.onnx");
  auto const match = from.match(network(), names);
  CHECK(match.found == texts{"dense/kernel"});
  CHECK(match.missing == texts{"conv/kernel"});
  CHECK(match.other_shape == texts{"dense/bias ('fc.bias') (F32 [3] there, F32 [2] here)"});
  std::vector<float> all(56, -1);
  from.read(network(), names, 0, all);
  CHECK(std::vector(all.begin() + 47, all.begin() + 55) == std::vector<float>{-1, 1, 4, 2, 5, 3, 6, -1});
  CHECK_FALSE(from.has_rows({"t", 3}));
  CHECK(model_version(dir / "m.onnx") == 0);
  CHECK(model_note(dir / "m.onnx", "hyperparameters").empty());
  CHECK_NOTHROW(check_model(dir / "m.onnx"));
  edl::parameter_layout tables;
  tables.tables.push_back({"t", 3});
  CHECK_THROWS_WITH_AS(import_rows(dir / "m.onnx", tables, {}),
                       doctest::Contains("has no readable rows for table 't'"), edl::error);
}

}  // namespace other_model_test
