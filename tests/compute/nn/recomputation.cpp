// SPDX-License-Identifier: Apache-2.0
// What says `recomputes` and cannot be is in tests/rejects/recomputes_*.cpp.
#include "edl/compute/nn/recomputation.hpp"

#include <type_traits>
#include <utility>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace recomputation_test {

namespace nn = edl::nn;

namespace {

/// x · |x|, and a trained factor.
template <bool Again>
struct square {
  static constexpr bool recomputes = Again, reads_y = false;

  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape, Visit&& visit) const {
    visit(nn::variable_spec{"factor", {1}, nn::constant{1}});
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = a.parameters[0] * a.x[i] * std::abs(a.x[i]);
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    a.gradients[0] = 0;
    for (std::size_t i = 0; i < a.x.size(); ++i) {
      a.gradients[0] += a.dy[i] * a.x[i] * std::abs(a.x[i]);
      if (!a.dx.empty()) a.dx[i] = a.dy[i] * a.parameters[0] * 2 * std::abs(a.x[i]);
    }
  }
};

/// A layer norm, whose gradient is derived, as it is or without `recomputes`.
template <bool Again>
struct norm {
  static constexpr bool recomputes = Again;

  constexpr auto forward(auto x, auto& layer) const { return nn::layer_norm{}.forward(x, layer); }
};

template <class Layer>
auto after_both_passes() {
  constexpr auto net =
      nn::sequential(nn::dense{.units = 6}, Layer{}, nn::dense{.units = 4}, Layer{}, nn::dense{.units = 3});
  lone_layer<std::remove_const_t<decltype(net)>> h{
      .l = net, .in = {1, 1, 5}, .batch = {4, nn::storage::recomputed}};
  h.forward();
  h.backward();
  return h;
}

using usual = edl::basic_backend<float>;
static_assert(std::is_same_v<decltype(nn::pass<usual>::random), edl::random_stream>);
static_assert(!std::is_same_v<decltype(nn::pass<nn::recomputing<usual>>::random), edl::random_stream>);

}  // namespace

TEST_CASE_TEMPLATE("a layer that says recomputes is computed again, to the same gradients in less memory",
                   Layers, std::pair<square<false>, square<true>>, std::pair<norm<false>, norm<true>>,
                   std::pair<norm<false>, nn::layer_norm>) {
  auto const whole = after_both_passes<typename Layers::first_type>();
  auto const again = after_both_passes<typename Layers::second_type>();
  CHECK(again.y == whole.y);
  CHECK(again.dx == whole.dx);
  CHECK(again.gradients == whole.gradients);
  CHECK(again.saved.size() < whole.saved.size());
}

}  // namespace recomputation_test
