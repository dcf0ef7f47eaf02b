// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/sequential.hpp"

#include <algorithm>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/batch_norm.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/dropout.hpp"

namespace sequential_test {

namespace nn = edl::nn;

namespace {

struct never_backward {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  void forward(auto& p, auto const& a) const { p.device.copy(a.x, a.y); }
  void backward(auto&, auto const&) const { FAIL("nobody needs this"); }
};

}  // namespace

TEST_CASE("two layers of one kind draw from different streams") {
  lone_layer<
      std::remove_cvref_t<decltype(nn::sequential(nn::dropout{.rate = 0.5f}, nn::dropout{.rate = 0.5f}))>>
      h{.l = nn::sequential(nn::dropout{.rate = 0.5f}, nn::dropout{.rate = 0.5f}),
        .in = {10, 10, 10},
        .batch = 1};
  std::ranges::fill(h.x, 1.0);
  h.forward();
  auto const kept = std::ranges::count_if(h.y, [](double v) { return v != 0; });
  CHECK(kept > 200);  // a quarter; a half if both dropped the same
  CHECK(kept < 300);
}

TEST_CASE("what stands before the first trained layer computes no gradient") {
  lone_layer<std::remove_cvref_t<decltype(nn::sequential(never_backward{}, nn::tanh{}, nn::dense{.units = 2},
                                                         nn::tanh{}))>>
      h{.l = nn::sequential(never_backward{}, nn::tanh{}, nn::dense{.units = 2}, nn::tanh{}),
        .in = {1, 1, 3}};
  h.forward();
  h.backward(false);
  CHECK_FALSE(std::isnan(h.gradients[0]));
}

}  // namespace sequential_test
