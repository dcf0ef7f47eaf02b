// SPDX-License-Identifier: Apache-2.0
// What tests/onnx.sh computes with ONNX Runtime is not here.
#include "edl/compute/onnx/graph.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/wire/scratch.hpp"
#include "edl/compute/onnx/elements.hpp"
#include "edl/compute/onnx/ids.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/compute/onnx/join.hpp"
#include "edl/compute/onnx/message.hpp"
#include "edl/compute/onnx/network.hpp"
#include "edl/compute/onnx/pictures.hpp"
#include "edl/compute/onnx/sequences.hpp"
#include "edl/core/error.hpp"
#include "edl/edl.hpp"

namespace graph_test {
namespace {

namespace nn = edl::nn;
namespace fs = std::filesystem;

/// A layer that nobody has told of ONNX.
struct doubled {
  static constexpr std::string_view name = "doubled";
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
};

constexpr auto plain = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 300});
constexpr auto unknown =
    nn::sequential(nn::features{.count = 3}, nn::residual(nn::sequential(nn::relu{}, doubled{})));

std::string read(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> names_in(scratch const& dir) {
  std::set<std::string> all;
  for (auto const& entry : fs::directory_iterator(dir.path())) all.insert(entry.path().filename());
  return all;
}

/// The file of a model's large tensors; empty: it has none.
std::string only_beside(std::string const& model) {
  std::vector<std::string> all;
  std::string const begin = fs::path(model).filename().native() + '.';
  for (auto const& entry : fs::directory_iterator(fs::path(model).parent_path()))
    if (std::string const name = entry.path().filename();
        name.starts_with(begin) && name.ends_with(".data") && name.size() == begin.size() + 13)
      all.push_back(entry.path());
  CHECK(all.size() <= 1);
  return all.empty() ? "" : all.front();
}

}  // namespace

TEST_CASE("a message is as Protocol Buffers write it") {
  edl::onnx::message m;
  m.number(1, 300).text(2, "ab").real(3, 1.0f).packed(4, std::vector<std::int64_t>{1, -1});
  using namespace std::string_literals;
  CHECK(m.bytes() ==
        "\x08\xac\x02\x12\x02"
        "ab\x1d\x00\x00\x80\x3f\x22\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST_CASE("a layer that cannot be exported is named, with the way out") {
  auto const layout = nn::layout_of(unknown.body, unknown.input);
  edl::onnx::graph g(layout);
  CHECK_THROWS_WITH_AS(
      edl::onnx::add_network(g, unknown, {}),
      doctest::Contains("layer 'residual/body/doubled' cannot be exported: its type 'doubled' "
                        "has no function `to_onnx`"),
      edl::error);
}

TEST_CASE("a variable that a layer has not is named") {
  edl::parameter_layout const layout;
  edl::onnx::graph g(layout);
  edl::onnx::inside const within(g, "dense");
  CHECK_THROWS_WITH_AS(g.variable("kernel"), doctest::Contains("'dense/kernel'"), edl::error);
}

TEST_CASE("an output that is called as an input gets a name of its own") {
  scratch const dir;
  edl::parameter_layout const layout;
  edl::onnx::graph g(layout);
  auto const x = g.input("a", {1, 1, 3}, edl::onnx::form::rows);
  g.output("a", x);
  CHECK_THROWS_WITH_AS(
      g.input("a", {1, 1, 3}, edl::onnx::form::rows),
      "two inputs of the ONNX file would be called 'a': give one of them another name in the model",
      edl::error);
  g.write(dir / "m.onnx");
  CHECK(read(dir / "m.onnx").find("a_output") != std::string::npos);
}

TEST_CASE("large tensors stand beside the model") {
  scratch const dir;
  auto const layout = nn::layout_of(plain.body, plain.input);
  std::vector<float> const values(layout.size(), 2);
  edl::onnx::graph g(layout, values);
  edl::onnx::add_network(g, plain, {});
  std::string const whole = dir / "whole.onnx", cut = dir / "cut.onnx";
  std::uint64_t const one = g.write(whole);
  CHECK(one == fs::file_size(whole));
  CHECK(names_in(dir) == std::set<std::string>{"whole.onnx"});
  std::uint64_t const both = g.write(cut, 4000);
  std::string const beside = only_beside(cut);
  CHECK(both == fs::file_size(cut) + fs::file_size(beside));
  CHECK(fs::file_size(cut) < 1000);
  CHECK(read(cut).find(fs::path(beside).filename()) != std::string::npos);
  CHECK(read(whole).find("dense/kernel") != std::string::npos);

  // The last byte decides, and what is left over of the limit's other side is replaced.
  std::string const edge = dir / "edge.onnx";
  std::uint64_t least = 0, most = one;  // of what has to be set for one file
  while (least < most)
    if (std::uint64_t const limit = (least + most) / 2; g.write(dir / "try.onnx", limit) == one)
      most = limit;
    else
      least = limit + 1;
  CHECK(g.write(edge, most) == one);
  CHECK(only_beside(edge).empty());
  std::uint64_t const apart = g.write(edge, most - 1);
  CHECK(apart == fs::file_size(edge) + fs::file_size(only_beside(edge)));
  edl::onnx::initializers const back(edge);
  CHECK(back.read(*back.find("dense/kernel")) == std::vector<float>(900, 2));
}

TEST_CASE("no model names another's tensors, and those of earlier models are removed") {
  scratch const dir;
  auto const layout = nn::layout_of(plain.body, plain.input);
  std::string const path = dir / "m.onnx";
  auto const write = [&](float all, std::uint64_t most) {
    std::vector<float> const values(layout.size(), all);
    edl::onnx::graph g(layout, values);
    edl::onnx::add_network(g, plain, {});
    g.write(path, most);
    return only_beside(path);
  };
  std::set<std::string> const mine{"m.onnx.data", "m.onnx.notes.data", "other.onnx.01234567.data"};
  for (std::string const& name : mine) std::ofstream(dir / name) << "mine";
  std::string const first = write(1, 1), second = write(2, 1);
  CHECK(first != second);  // a reader that has the first model finds no other numbers
  CHECK(!fs::exists(first));
  CHECK(write(2, 1) == second);
  CHECK(write(2, 1 << 20).empty());
  auto all = mine;
  all.insert("m.onnx");
  CHECK(names_in(dir) == all);
  std::ofstream(dir / "m.onnx.01234567.data") << "no model names it";
  CHECK(write(3, 1 << 20) == dir / "m.onnx.01234567.data");
  for (char const* name : {".m.onnx.tmp-0123456789abcdef", ".m.onnx.data.tmp-0123456789abcdef"})
    std::ofstream(dir / name) << "a killed writer's";
  for (char const* name : {".other.tmp-0123456789abcdef", ".m.onnx.notes.tmp-0123456789abcdef"}) {
    std::ofstream(dir / name) << "somebody else's";
    all.insert(name);
  }
  write(4, 1 << 20);
  all.insert("m.onnx.01234567.data");
  CHECK(names_in(dir) == all);
}

TEST_CASE("a message that readers refuse is not written") {
  scratch const dir;
  edl::parameter_layout const layout;
  edl::onnx::table_rows t{.name = "words", .width = 2, .ids = std::vector<std::int64_t>(500, 7), .each = {}};
  edl::onnx::graph g(layout, {}, {&t, 1});
  g.output("output", {g.rows_for("words", "words", 3, 2), {3, 1, 2}, edl::onnx::form::places});
  CHECK_THROWS_WITH_AS(g.write(dir / "m.onnx", 1, 1000),
                       doctest::Contains("has room for 1000: train with fewer rows"), edl::error);
  CHECK(!fs::exists(dir / "m.onnx"));
  CHECK(!fs::exists(dir / "m.onnx.data"));
}

TEST_CASE("tables may be left out: their rows are inputs, and their ids stand nowhere") {
  scratch const dir;
  edl::parameter_layout const layout;
  edl::onnx::table_rows t{.name = "words", .width = 2, .ids = {1, 2}, .each = {}};
  edl::onnx::graph g(layout, {}, {&t, 1});
  g.leave_tables_out();
  g.output("output", {g.rows_for("words", "words", 3, 2), {3, 1, 2}, edl::onnx::form::places});
  g.write(dir / "m.onnx");
  std::string const file = read(dir / "m.onnx");
  CHECK(file.find("words_rows") != std::string::npos);
  CHECK(file.find("LabelEncoder") == std::string::npos);
  CHECK(file.find("tables/words") == std::string::npos);
}

}  // namespace graph_test
