// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer.hpp"

#include <doctest/doctest.h>

#include "compute/nn/harness.hpp"
#include "compute/nn/networks.hpp"
#include "edl/compute/nn/layers.hpp"

namespace layer_test {

namespace nn = edl::nn;

namespace {

/// A user's own layer: y = scale · x², with one trained scale.
struct scaled_square {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape, Visit&& visit) const {
    visit(nn::variable_spec{"scale", {1}, nn::constant{2}});
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = a.parameters[0] * a.x[i] * a.x[i];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    a.gradients[0] = 0;
    for (std::size_t i = 0; i < a.x.size(); ++i) {
      a.gradients[0] += a.dy[i] * a.x[i] * a.x[i];
      if (!a.dx.empty()) a.dx[i] = 2 * a.parameters[0] * a.x[i] * a.dy[i];
    }
  }
};

struct no_output {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
};

}  // namespace

TEST_CASE("what a layer is") {
  CHECK(nn::layer<scaled_square>);
  CHECK(nn::runs_on<scaled_square, edl::cpu>);
  CHECK(nn::runs_on<nn::conv2d, edl::cpu>);
  CHECK_FALSE(nn::layer<int>);
  CHECK_FALSE(nn::layer<no_output>);
  CHECK_FALSE(nn::container<nn::conv2d>);
  CHECK(nn::container<decltype(nn::residual(nn::relu{}))>);
}

TEST_CASE("a network runs on any device if all that it is made of says so") {
  CHECK(nn::is_portable(zoo.body, zoo.input));
  CHECK(nn::is_portable(mnist.body, mnist.input));
  auto const own =
      nn::sequential(nn::dense{.units = 3}, nn::residual(nn::sequential(scaled_square{}, nn::relu{})));
  CHECK_FALSE(nn::is_portable(own, {1, 1, 3}));
  CHECK_FALSE(nn::is_portable(scaled_square{}, {1, 1, 3}));
}

TEST_CASE("a user's own layer works among the others, named by its place") {
  auto const net =
      nn::sequential(nn::dense{.units = 3}, scaled_square{}, nn::residual(scaled_square{}), nn::tanh{});
  check_gradients(net, {1, 1, 2});
  auto const layout = nn::layout_of(net, {1, 1, 2});
  REQUIRE(layout.variables.size() == 4);
  CHECK(layout.variables[2].name == "layer/scale");
  CHECK(layout.variables[3].name == "residual/body/scale");
  CHECK(nn::saved_by(scaled_square{}, {1, 1, 2}, 5) == 0);
  CHECK(nn::scratch_of(scaled_square{}, {1, 1, 2}, 5) == 0);
}

}  // namespace layer_test
