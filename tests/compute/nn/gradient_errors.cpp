// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/gradient_errors.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "edl/compute/nn/layer/batch_norm.hpp"
#include "edl/compute/nn/layer/dense.hpp"

namespace gradient_errors_test {

namespace nn = edl::nn;

namespace {

/// What is wrong with a layer that multiplies by a trained factor.
enum class defect { none, factor, input, forgotten };

template <defect Of>
struct factor {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape, Visit&& visit) const {
    visit(nn::variable_spec{"factor", {1}, nn::constant{1}});
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = a.x[i] * a.parameters[0];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    a.gradients[0] = 0;
    for (std::size_t i = 0; i < a.x.size(); ++i) {
      a.gradients[0] += a.dy[i] * a.x[i] * (Of == defect::factor ? 1.001 : 1);
      if (Of != defect::forgotten || i > 0) a.dx[i] = a.dy[i] * (Of == defect::input ? 1 : a.parameters[0]);
    }
  }
};

}  // namespace

TEST_CASE("layers that are right agree with central differences") {
  auto const of_dense = nn::gradient_errors(nn::dense{.units = 3}, {1, 1, 5});
  CHECK(of_dense.inputs < 1e-7);
  CHECK(of_dense.variables < 1e-7);
  auto const of_norm = nn::gradient_errors(nn::batch_norm{}, {2, 2, 3}, 4, edl::mode::evaluation);
  CHECK(of_norm.inputs < 1e-7);
  CHECK(of_norm.variables < 1e-7);
  CHECK(nn::gradient_errors(factor<defect::none>{}, {1, 1, 5}).variables < 1e-7);
}

TEST_CASE("a gradient that is wrong is told, by what is wrong") {
  auto const of_factor = nn::gradient_errors(factor<defect::factor>{}, {1, 1, 5});
  CHECK(of_factor.inputs < 1e-7);
  CHECK(of_factor.variables > 1e-4);
  auto const of_input = nn::gradient_errors(factor<defect::input>{}, {1, 1, 5});
  CHECK(of_input.inputs > 1e-2);
  CHECK(of_input.variables < 1e-7);
}

TEST_CASE("an element that a pass leaves out is told as NaN") {
  CHECK(std::isnan(nn::gradient_errors(factor<defect::forgotten>{}, {1, 1, 5}).inputs));
}

}  // namespace gradient_errors_test
