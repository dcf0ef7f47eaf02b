// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/onnx/origins.hpp"

#include <doctest/doctest.h>

#include <edl/edl.hpp>
#include <random>
#include <string>
#include <vector>

#include "edl/base/checkpoint/other_model.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/compute/onnx/network.hpp"
#include "scratch_directory.hpp"

namespace origins_test {

namespace nn = edl::nn;

namespace {

constexpr nn::image picture{.height = 7, .width = 9, .channels = 4};
constexpr nn::padding same = nn::padding::same;

// As many inputs as outputs wherever that is possible, so that extents do not tell what is turned.
constexpr auto dense = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 4}, nn::relu{},
                                      nn::dense{.units = 4, .use_bias = false});
constexpr auto convolutions = nn::sequential(
    picture, nn::conv2d{.filters = 4, .kernel = 4, .padding = same},
    nn::conv2d{.filters = 4, .kernel = {3, 2}, .padding = same, .groups = 2},
    nn::conv2d_transpose{.filters = 4, .kernel = 4, .padding = same}, nn::flatten{}, nn::dense{.units = 3});
constexpr auto norms = nn::sequential(
    picture, nn::batch_norm{}, nn::group_norm{.groups = 2}, nn::batch_norm{.scale = false, .shift_gain = 4},
    nn::layer_norm{}, nn::dense{.units = 4, .each_place = true}, nn::flatten{}, nn::batch_norm{});
constexpr auto branches = nn::sequential(
    picture,
    nn::residual(nn::sequential(nn::conv2d{.filters = 4, .kernel = 3, .padding = same}, nn::batch_norm{})),
    nn::repeat<2>(nn::sum(nn::conv2d{.filters = 4}, nn::product(nn::identity{}, nn::sigmoid{}))));
constexpr auto bags =
    nn::sequential(nn::ids{.count = 4}, nn::embedding{.vocabulary = 3, .width = 3},
                   nn::concat(nn::cross{.layers = 2}, nn::cross{.layers = 2, .vectors = true},
                              nn::compressed_interaction{.layers = 3, .maps = 4}));
constexpr auto attention =
    nn::sequential(nn::ids{.count = 8}, nn::embedding{.vocabulary = 8, .width = 8}, nn::positions{.most = 8},
                   nn::residual(nn::attention{.heads = 2, .causal = true}),
                   nn::attention{.heads = 2, .rotary = true, .use_bias = false});
constexpr auto recurrent = nn::sequential(
    nn::ids{.count = 6}, nn::embedding{.vocabulary = 12, .width = 4}, nn::bidirectional(nn::lstm{.units = 4}),
    nn::bidirectional(nn::gru{.units = 4}),
    nn::concat(nn::lstm{.units = 4, .last = true}, nn::lstm{.units = 3, .reverse = true, .last = true},
               nn::gru{.units = 4, .last = true}));

template <auto const& Net>
void comes_back(std::string const& name) {
  CAPTURE(name);
  scratch const dir;
  auto const layout = edl::model<Net, edl::cpu>::layout();
  auto const build = [](edl::onnx::graph& g) { edl::onnx::add_network(g, Net, {}); };
  std::mt19937 draw(7);
  std::vector<float> values(layout.size());
  for (float& v : values) v = std::normal_distribution<float>()(draw);
  edl::onnx::graph g(layout, values);
  build(g);
  g.write(dir / "m.onnx");
  // A bias that the export adds 1 to comes back as far as that has not rounded it: outputs are the same.
  auto wanted = values;
  for (edl::variable const& v : layout.variables)
    if (v.name.find("lstm") != v.name.npos && v.name.ends_with("/bias"))
      for (std::size_t i = v.dims.size() / 4; i < v.dims.size() / 2; ++i)
        wanted[v.offset + i] = (values[v.offset + i] + 1) - 1;
  edl::checkpoint::other_model const from(dir / "m.onnx",
                                          [&] { return edl::onnx::origins(layout, {}, build); });
  auto const match = from.match(layout, {});
  CHECK(match.missing == std::vector<std::string>());
  CHECK(match.other_shape == std::vector<std::string>());
  std::vector<float> back(layout.size());
  from.read(layout, {}, 0, back);
  CHECK(back == wanted);
  std::vector<float> part(layout.size() / 2);
  from.read(layout, {}, layout.size() / 3, part);
  CHECK(part == std::vector<float>(wanted.begin() + std::ptrdiff_t(layout.size() / 3),
                                   wanted.begin() + std::ptrdiff_t(layout.size() / 3 + part.size())));
}

}  // namespace

TEST_CASE("variables of every kind of layer come back from an export, bit for bit") {
  comes_back<dense>("dense");
  comes_back<convolutions>("convolutions");
  comes_back<norms>("norms");
  comes_back<branches>("branches");
  comes_back<bags>("bags");
  comes_back<attention>("attention");
  comes_back<recurrent>("recurrent");
}

TEST_CASE(
    "an element that is computed is no variable's, and another model's tensors are told by their shapes") {
  edl::parameter_layout const layout{.variables = {{"a/w", {2}, 0}, {"a/v", {2}, 2}}, .parameters = 4};
  auto const build = [](edl::onnx::graph& g) {
    edl::onnx::inside const a(g, "a");
    auto w = g.elements("w");
    g.tensor("w", {2}, {w[1], w[0]});
    auto v = g.elements("v");
    g.tensor("v", {2}, {v[0] * v[1], v[0] * 3 + 0.1f});
    g.number(3);
  };
  auto const all = edl::onnx::origins(layout, {}, build);
  REQUIRE(all.size() == 3);
  constexpr auto none = edl::onnx::tensor_origin::none;
  using elements = std::vector<edl::onnx::tensor_origin::element>;
  CHECK(all[0].elements == elements{{1}, {0}});
  CHECK(all[1].elements == elements{{none}, {2, 3, 0.1f}});
  CHECK(all[2].elements == elements{{none}});

  scratch const dir;
  std::vector<float> const values{1, 2, 3, 4};
  edl::onnx::graph g(layout, values);
  build(g);
  g.write(dir / "m.onnx");
  edl::checkpoint::other_model const from(dir / "m.onnx", [&] { return all; });
  edl::parameter_layout const other{.variables = {{"a/w", {2}, 0}, {"a/v", {2}, 2}, {"a/u", {1}, 4}},
                                    .parameters = 5};
  auto const match = from.match(other, {});
  CHECK(match.found == std::vector<std::string>{"a/w"});
  CHECK(match.missing == std::vector<std::string>{"a/v", "a/u"});
  std::vector<float> read(5, -1);
  from.read(other, {}, 0, read);
  CHECK(read == std::vector<float>{1, 2, -1, -1, -1});
}

}  // namespace origins_test
