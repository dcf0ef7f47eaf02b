// SPDX-License-Identifier: Apache-2.0
// That folded networks compute the same is the matter of tests/onnx.sh.
#include "edl/compute/onnx/batch_norm_folding.hpp"

#include <doctest/doctest.h>

#include <edl/edl.hpp>
#include <map>
#include <string>
#include <vector>

#include "edl/compute/onnx/network.hpp"

namespace batch_norm_folding_test {
namespace {

namespace nn = edl::nn;
using strings = std::vector<std::string>;

constexpr auto all_kinds =
    nn::sequential(nn::image{.height = 4, .width = 4, .channels = 2}, nn::batch_norm{},
                   nn::conv2d{.filters = 2, .kernel = 3, .use_bias = false}, nn::batch_norm{},
                   nn::batch_norm{}, nn::relu{}, nn::batch_norm{},
                   nn::residual(nn::sequential(nn::batch_norm{}, nn::dense{.units = 2, .each_place = true})),
                   nn::dense{.units = 3, .each_place = true, .use_bias = false}, nn::batch_norm{},
                   nn::flatten{}, nn::batch_norm{}, nn::dense{.units = 2}, nn::batch_norm{});
constexpr auto none = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 3});
constexpr auto halves =
    nn::sequential(nn::features{.count = 2}, nn::dense{.units = 2}, nn::batch_norm{.epsilon = 1});

std::map<std::string, std::vector<float>> tensors_of(edl::onnx::graph const& g) {
  std::map<std::string, std::vector<float>> all;
  g.each_tensor([&](std::string const& name, auto const&, edl::view<float> elements) {
    all[name] = {elements.begin(), elements.end()};
  });
  return all;
}

}  // namespace

TEST_CASE(
    "batch normalisation behind a convolution or a dense layer is folded, and any other one stays with a "
    "reason") {
  auto const layout = edl::model<all_kinds, edl::cpu>::layout();
  std::vector<float> const values(layout.size(), 0.5f);
  edl::onnx::graph g(layout, values);
  edl::onnx::add_network(g, all_kinds, {});
  auto const [gone, stay] = edl::onnx::fold_batch_norms(g);
  CHECK(gone == strings{"batch_normalization_1", "batch_normalization_2", "batch_normalization_4",
                        "batch_normalization_6"});
  CHECK(stay == strings{"'batch_normalization' (it is the first layer)",
                        "'batch_normalization_3' (behind 'relu', no convolution or dense layer)",
                        "'residual/body/batch_normalization' (other nodes read its input, too)",
                        "'batch_normalization_5' (behind 'flatten', no convolution or dense layer)"});
  auto const left = tensors_of(g);
  CHECK(left.contains("conv2d/kernel_folded"));
  CHECK(left.contains("conv2d/bias_folded"));
  CHECK(!left.contains("conv2d/kernel"));
  CHECK(!left.contains("batch_normalization_1/gamma"));
  CHECK(left.contains("batch_normalization_3/gamma"));
  CHECK(left.contains("dense/bias_folded"));
}

TEST_CASE(
    "weights are what they are by the formula, and a network without batch normalisation is left alone") {
  auto const layout = edl::model<halves, edl::cpu>::layout();
  std::vector<float> values(layout.size());
  auto const set = [&](std::string const& name, std::vector<float> const& to) {
    for (edl::variable const& v : layout.variables)
      if (v.name == name) std::ranges::copy(to, values.begin() + std::ptrdiff_t(v.offset));
  };
  set("dense/kernel", {1, 2, 3, 4});
  set("dense/bias", {10, 20});
  set("batch_normalization/gamma", {4, 16});
  set("batch_normalization/beta", {0.5f, 0.25f});
  set("batch_normalization/moving_mean", {8, 24});
  set("batch_normalization/moving_variance", {3, 15});  // with epsilon, roots of 2 and 4
  edl::onnx::graph g(layout, values);
  edl::onnx::add_network(g, halves, {});
  edl::onnx::fold_batch_norms(g);
  CHECK(tensors_of(g) ==
        std::map<std::string, std::vector<float>>{{"dense/kernel_folded", {2, 6, 8, 16}},  // turned
                                                  {"dense/bias_folded", {4.5f, -15.75f}}});

  auto const plain = edl::model<none, edl::cpu>::layout();
  edl::onnx::graph other(plain);
  edl::onnx::add_network(other, none, {});
  auto const [gone, stay] = edl::onnx::fold_batch_norms(other);
  CHECK(gone.empty());
  CHECK(stay.empty());
}

}  // namespace batch_norm_folding_test
