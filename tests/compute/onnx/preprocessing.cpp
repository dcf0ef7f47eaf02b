// SPDX-License-Identifier: Apache-2.0
// What the graph computes is the matter of tests/onnx.sh.
#include "edl/compute/onnx/preprocessing.hpp"

#include <doctest/doctest.h>

#include <edl/edl.hpp>
#include <map>
#include <string>
#include <vector>

#include "edl/compute/onnx/network.hpp"
#include "edl/core/error.hpp"

namespace preprocessing_test {
namespace {

namespace nn = edl::nn;

constexpr auto one = nn::sequential(nn::image{.height = 1, .width = 2, .channels = 2}, nn::dense{.units = 2});
constexpr auto two = [] {
  constexpr auto in =
      nn::inputs(nn::input<"a">(nn::features{.count = 2}), nn::input<"b">(nn::ids{.count = 1}));
  return nn::sequential(in,
                        nn::concat(in.from<"a">(), in.from<"b">(nn::embedding{.vocabulary = 3, .width = 2})));
}();

/// The extents and the numbers of the tensors that preprocessing adds.
template <auto const& Net>
std::map<std::string, std::vector<float>> added(std::string const& input, edl::onnx::preprocessing const& p) {
  auto const layout = edl::model<Net, edl::cpu>::layout();
  std::vector<float> const values(layout.size());
  edl::onnx::graph g(layout, values);
  g.prepare(input, p);
  edl::onnx::add_network(g, Net, {});
  std::map<std::string, std::vector<float>> all;
  g.each_tensor([&](std::string const& name, auto const&, edl::view<float> elements) {
    if (name.find("dense") == name.npos && name.find("embedding") == name.npos)
      all[name] = {elements.begin(), elements.end()};
  });
  return all;
}

}  // namespace

TEST_CASE(
    "factors and constants are one number, one for each channel, or all, and none where nothing changes") {
  using tensors = std::map<std::string, std::vector<float>>;
  edl::onnx::preprocessing p{
      .from = {{"x", {1, 2, 2}}}, .places = {0, 1, 2, 3}, .factors = {2, 2, 2, 2}, .offsets = {0, 0, 0, 0}};
  CHECK(added<one>("input", p) == tensors{{"number/2", {2}}});
  p.offsets = {1, 3, 1, 3};
  CHECK(added<one>("input", p) == tensors{{"number/2", {2}}, {"preprocessing/input/offsets", {1, 3}}});
  p.factors = {1, 2, 3, 4}, p.offsets = {0, 0, 0, 0};
  CHECK(added<one>("input", p) == tensors{{"preprocessing/input/factors", {1, 2, 3, 4}}});
  p.factors = {1, 1, 1, 1};
  CHECK(added<one>("input", p).empty());
}

TEST_CASE("a name that two inputs would have is refused") {
  edl::onnx::preprocessing p{.from = {{"b", {2}}}, .places = {0, 1}, .factors = {1, 1}, .offsets = {0, 0}};
  CHECK_THROWS_WITH_AS(added<two>("a", p),
                       doctest::Contains("two inputs of the ONNX file would be called 'b'"), edl::error);
  p.from[0].name = "output";  // which the output then is not called
  CHECK_NOTHROW(added<two>("a", p));
  p.from[0].name = "a";  // of the record, in place of the network's own
  CHECK_NOTHROW(added<two>("a", p));
}

}  // namespace preprocessing_test
