// SPDX-License-Identifier: Apache-2.0
// That an imported network computes the same is the matter of docs/tasks/import.md.
#include "import/import.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/error.hpp"
#include "onnx_file.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace import_test {

using namespace onnx_parts;

std::vector<float> counted(std::size_t n) {
  std::vector<float> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(float(i));
  return all;
}

struct imported {
  int code = 0;
  std::string text;
};

/// Writes the bytes as net.onnx, and imports them.
imported import_of(scratch const& dir, std::string const& bytes, std::vector<std::string> flags = {}) {
  std::ofstream(dir / "net.onnx", std::ios::binary) << bytes;
  flags.insert(flags.begin(), {dir / "net.onnx", "--to=" + dir.path(), "--force"});
  imported made;
  made.code = edl::tool::import_model(flags);
  made.text = slurp(dir / "net.cpp");
  return made;
}

/// Channels first, as PyTorch exports it: two equal blocks, and a dense layer behind Flatten.
std::string picture_network() {
  std::string graph = port(11, "image", {2, 4, 6});
  std::string from = "image";
  std::vector<float> const kernel(2 * 2 * 3 * 3, 0.5f), bias(2, 1.0f);
  for (std::string const k : {"1", "2"}) {
    graph += floats("w" + k, {2, 2, 3, 3}, kernel) + floats("b" + k, {2}, bias);
    graph += node("Conv", {from, "w" + k, "b" + k}, "c" + k, {{"pads", {1, 1, 1, 1}}});
    graph += node("Sigmoid", {"c" + k}, "s" + k) + node("Mul", {"c" + k, "s" + k}, "m" + k);
    graph += node("Add", {"m" + k, from}, "a" + k) + node("Relu", {"a" + k}, "r" + k);
    from = "r" + k;
  }
  graph += node("MaxPool", {from}, "p", {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
  graph += node("Flatten", {"p"}, "f") + floats("w", {12, 2}, counted(24)) + node("MatMul", {"f", "w"}, "y");
  return graph + floats("b", {2}, {5, 6}) + node("Add", {"y", "b"}, "z") + port(12, "z", {2});
}

TEST_CASE("a network of ONNX becomes a model, with blocks that repeat, and weights in edl's order") {
  scratch const dir;
  auto const made = import_of(dir, model(picture_network()));
  CHECK(made.code == 0);
  CHECK(contains(made.text, "nn::image{.height = 4, .width = 6, .channels = 2}"));
  CHECK(contains(made.text, "nn::repeat<2>(nn::sequential(\n              nn::residual("));
  CHECK(
      contains(made.text, "nn::conv2d{.filters = 2, .kernel = 3, .padding = nn::padding::same}, nn::silu{}"));
  CHECK(contains(made.text, "nn::max_pool{.window = 2}, nn::dense{.units = 2});"));
  CHECK(contains(made.text, "into.features = record.floats(\"image\", {4, 6, 2});"));
  CHECK(contains(made.text, "#error"));
  edl::checkpoint::safetensors_file const weights(dir / "net.safetensors");
  CHECK(weights.find("repeat/sequential_1/residual/body/conv2d/kernel") != nullptr);
  auto const* const kernel = weights.find("dense/kernel");
  REQUIRE(kernel != nullptr);
  std::vector<float> rows(24);
  weights.read(*kernel, 0, std::as_writable_bytes(std::span(rows)));
  // ONNX has (channel, row, column); edl has (row, column, channel).
  CHECK(rows[2] == 12);
  CHECK(rows[4] == 2);
  CHECK(contains(refusal([&] { edl::tool::import_model({dir / "net.onnx", "--to=" + dir.path()}); }),
                 "is there already: give --force"));
}

TEST_CASE("a file whose name is none for a struct gets another") {
  scratch const dir;
  for (char const* const stem : {"class", "edl", "3d"}) {
    std::string const file = dir / (std::string(stem) + ".onnx");
    std::ofstream(file, std::ios::binary) << model(picture_network());
    CHECK(edl::tool::import_model({file, "--to=" + dir.path()}) == 0);
    CHECK(contains(slurp(dir / ("model_" + std::string(stem) + ".cpp")),
                   "struct model_" + std::string(stem) + " {"));
  }
}

TEST_CASE("an operator without a layer is named with its node, and the rest is written") {
  scratch const dir;
  std::string const graph = port(11, "x", {3}) + node("Relu", {"x"}, "a") + node("Det", {"a"}, "b") +
                            floats("w", {3, 2}, counted(6)) + node("MatMul", {"b", "w"}, "y") +
                            port(12, "y", {2});
  auto const made = import_of(dir, model(graph));
  CHECK(made.code == edl::tool::failed);
  CHECK(contains(made.text, "// Not imported: `unknown_det_1`: node 'node_b' (Det)"));
  CHECK(contains(made.text, "nn::relu{}, unknown_det_1{},"));
}

TEST_CASE("the operator that is the cause is named, where another operand takes its place") {
  scratch const dir;
  std::string const graph = port(11, "x", {3}) + node("Det", {"x"}, "a") + floats("w", {3, 2}, counted(6)) +
                            node("MatMul", {"x", "w"}, "b") + node("Add", {"b", "a"}, "y") +
                            port(12, "y", {2});
  auto const made = import_of(dir, model(graph));
  CHECK(made.code == edl::tool::failed);
  CHECK(contains(made.text, "// Not imported: `unknown_det_1`"));
}

TEST_CASE("extents with names are given by flags, and formulas become layers") {
  scratch const dir;
  std::string const graph = port(11, "x", {-1, 4}) + floats("s", {4}, counted(4)) + node("Exp", {"x"}, "e") +
                            node("Mul", {"e", "s"}, "m") + node("Div", {"m", "x"}, "y") +
                            port(12, "y", {-1, 4});
  CHECK(contains(complaint([&] { import_of(dir, model(graph)); }), "--extent=length=128"));
  std::string const unnamed = port(11, "x", {0, 4}) + node("Relu", {"x"}, "y") + port(12, "y", {0, 4});
  CHECK(contains(complaint([&] { import_of(dir, model(unnamed)); }), "--extent=x.1=128"));
  CHECK(import_of(dir, model(unnamed), {"--extent=x.1=3"}).code == 0);
  auto const refused = [&](std::vector<std::string> flags) {
    return complaint([&] { import_of(dir, model(unnamed), flags); });
  };
  CHECK(contains(refused({"--extent=x.2=3"}), "these have none: x.1"));
  CHECK(contains(refused({"--extent=x.1=3", "--extent=x.1=4"}), "given twice"));
  auto const made = import_of(dir, model(graph), {"--extent=length=5"});
  CHECK(made.code == 0);
  CHECK(contains(made.text, "nn::image{.width = 5, .channels = 4}"));
  CHECK(contains(made.text,
                 "auto const constant = layer.variable(\"constant\", x.channels(), nn::constant{1});"));
  CHECK(contains(made.text, "return nn::exp(x) * constant / x;"));
}

TEST_CASE("the nodes of attention over several heads are one layer, with the kernels side by side") {
  scratch const dir;
  std::string graph = port(11, "x", {3, 4}) + ints("apart", {0, 3, 2, 2}) + ints("together", {0, 3, 4});
  for (std::string const k : {"q", "k", "v"}) {
    graph += floats("w" + k, {4, 4}, counted(16));
    graph += node("MatMul", {"x", "w" + k}, "m" + k) + node("Reshape", {"m" + k, "apart"}, "r" + k);
    graph += node("Transpose", {"r" + k}, "t" + k,
                  {{"perm", k == "k" ? numbers{0, 2, 3, 1} : numbers{0, 2, 1, 3}}});
  }
  graph += floats("root", {}, {0.70710678f}) + floats("wo", {4, 4}, counted(16));
  graph += node("MatMul", {"tq", "tk"}, "s") + node("Mul", {"s", "root"}, "scaled");
  graph += node("Softmax", {"scaled"}, "p", {{"axis", {-1}}}) + node("MatMul", {"p", "tv"}, "h");
  graph += node("Transpose", {"h"}, "b", {{"perm", {0, 2, 1, 3}}}) + node("Reshape", {"b", "together"}, "c");
  graph += node("MatMul", {"c", "wo"}, "y") + port(12, "y", {3, 4});
  auto const made = import_of(dir, model(graph));
  CHECK(made.code == 0);
  CHECK(contains(made.text, "nn::attention{.heads = 2, .use_bias = false});"));
  edl::checkpoint::safetensors_file const weights(dir / "net.safetensors");
  auto const* const kernel = weights.find("attention/query_key_value_kernel");
  REQUIRE(kernel != nullptr);
  REQUIRE(kernel->dims == std::vector<std::uint64_t>{4, 12});
  std::vector<float> row(12);
  weights.read(*kernel, 0, std::as_writable_bytes(std::span(row)));
  CHECK(row[3] == doctest::Approx(3));
  CHECK(row[5] == 1);
  CHECK(row[11] == 3);
}

TEST_CASE("hostile files are errors, or have nodes without a layer") {
  scratch const dir;
  std::string const good = model(picture_network());
  for (std::size_t n = 0; n < good.size(); n += 7)
    CHECK_THROWS_AS(import_of(dir, good.substr(0, n)), edl::error);
  auto const said = [&](std::string const& graph) {
    return complaint([&] { import_of(dir, model(port(11, "x", {3}) + graph + port(12, "y", {3}))); });
  };
  CHECK(contains(said(node("Relu", {"b"}, "a") + node("Relu", {"a"}, "b") + node("Relu", {"b"}, "y")),
                 "reads 'b'"));
  CHECK(contains(said(node("MatMul", {"x", "w"}, "y")), "reads 'w'"));
  CHECK(contains(said(node("Relu", {"x"}, "a")), "nothing makes the output 'y'"));
  CHECK(contains(said(node("Relu", {"x"}, "y") + node("Relu", {"x"}, "y")), "two nodes make 'y'"));
  CHECK(contains(said(floats("w", {1 << 20, 1 << 20}, {1}) + node("MatMul", {"x", "w"}, "y")), "tensor 'w'"));
  CHECK(contains(said(floats("w", {3}, counted(3)) + node("Identity", {"w"}, "w") + node("Relu", {"x"}, "y")),
                 "two nodes make 'w'"));
  CHECK(contains(complaint([&] {
                   import_of(dir, model(port(11, "x", {std::int64_t(1) << 31}) + node("Relu", {"x"}, "y") +
                                        port(12, "y", {3})));
                 }),
                 "extents"));
  std::string doubled = ints("c0", numbers(9, 1)), steps = node("Sub", {"x", "x"}, "s0");
  for (int i = 0; i < 40; ++i) {
    std::string const from = std::to_string(i), to = std::to_string(i + 1);
    doubled += node("Concat", {"c" + from, "c" + from}, "c" + to, {{"axis", {0}}});
    steps += node("Sub", {"s" + from, "s" + from}, "s" + to);
  }
  for (std::string const& odd :
       {node("Relu", {"", "x"}, "y"), node("Add", {"x"}, "y"), doubled + node("Reshape", {"x", "c40"}, "y")})
    CHECK(import_of(dir, model(port(11, "x", {3}) + odd + port(12, "y", {3}))).code == edl::tool::failed);
  // Each step reads the one before twice: the work may not double.
  CHECK(import_of(dir, model(port(11, "x", {3}) + steps + port(12, "s40", {3}))).code == 0);
  std::string const words =
      port(11, "class", {3}) + port(11, "a\nb", {3}) + node("Add", {"class", "a\nb"}, "y");
  auto const named = import_of(dir, model(words + port(12, "y", {3})));
  CHECK(contains(named.text, "auto class_"));
  CHECK(contains(named.text, "record.floats(\"a\\012b\""));
  auto const text = [&](std::string const& graph, numbers const& dims) {
    return import_of(dir, model(graph + port(12, "y", dims))).text;
  };
  std::string const alike =
      text(port(11, "a.b", {3}) + port(11, "a_b", {3}) + node("Add", {"a.b", "a_b"}, "y"), {3});
  CHECK(contains(alike, "nn::input<\"a_b\">"));
  CHECK(contains(alike, "into.input<\"a_b_1\">() = record.floats(\"a_b\""));
  CHECK(!contains(text(port(11, "x", {3}) + node("Relu", {"x"}, "y", {}, "other\\"), {3}), "\\\n"));
  for (float const odd : {std::nanf(""), INFINITY})
    CHECK(contains(text(port(11, "x", {3}) + floats("c", {}, {odd}) + node("Mul", {"x", "c"}, "y"), {3}),
                   "a constant that is infinite or not a number"));
  CHECK(contains(
      text(port(11, "x", {3}) + floats("c", {}, {std::nanf("")}) + node("Sub", {"x", "c"}, "y"), {3}),
      "a constant that is not a number"));
  std::string heads = port(11, "x", {3, 4}) + port(11, "z", {2, 3, 3}) + ints("apart", {0, 3, 2, 2});
  for (std::string const k : {"q", "k"})
    heads += floats("w" + k, {4, 4}, counted(16)) + node("MatMul", {"x", "w" + k}, "m" + k) +
             node("Reshape", {"m" + k, "apart"}, "r" + k) +
             node("Transpose", {"r" + k}, "t" + k,
                  {{"perm", k == "k" ? numbers{0, 2, 3, 1} : numbers{0, 2, 1, 3}}});
  heads += node("MatMul", {"tq", "tk"}, "s") + node("Sigmoid", {"s"}, "p") + node("Add", {"p", "z"}, "y");
  std::string const scores = text(heads, {2, 3, 3});
  CHECK(contains(scores, "attention with other arithmetic"));
  CHECK(!contains(scores, "nn::scores"));
  std::int64_t const huge = std::int64_t(1) << 62;
  for (option const& o : {option{"strides", {huge, huge}}, option{"pads", {huge, huge, huge, huge}},
                          option{"strides", {0, 0}}, option{"group", {0}}, option{"group", {-1}}}) {
    std::string const graph = port(11, "x", {1, 3, 3}) + floats("w", {1, 1, 1, 1}, {1}) +
                              node("Conv", {"x", "w"}, "y", {o}) + port(12, "y", {1, 3, 3});
    CHECK(import_of(dir, model(graph)).code == edl::tool::failed);
  }
}

}  // namespace import_test
