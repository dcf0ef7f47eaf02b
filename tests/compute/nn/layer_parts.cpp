// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer_parts.hpp"

#include <doctest/doctest.h>

#include "edl/compute/device/backend.hpp"
#include "edl/compute/nn/layers.hpp"

namespace layer_parts_test {

namespace nn = edl::nn;

namespace {

using device = edl::basic_backend<float>;

struct half {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  void forward(auto&, auto const&) const {}
};

}  // namespace

TEST_CASE("what runs a layer is looked for part by part") {
  CHECK(nn::has_forward<device, nn::dense>);
  CHECK(nn::has_backward<device, nn::dense>);
  CHECK(nn::has_forward<device, half>);
  CHECK_FALSE(nn::has_backward<device, half>);
  CHECK(nn::has_forward<device, nn::no_layer>);
  CHECK(nn::has_backward<device, nn::no_layer>);
}

TEST_CASE("what stands in for no layer is found, however deep") {
  edl::shape const in{1, 1, 3};
  CHECK_FALSE(nn::holds_no_layer(nn::sequential(nn::dense{.units = 2}, nn::relu{}), in));
  CHECK(nn::holds_no_layer(nn::no_layer{}, in));
  CHECK(nn::holds_no_layer(nn::sequential(nn::relu{}, nn::residual(nn::sequential(nn::no_layer{}))), in));
}

}  // namespace layer_parts_test
