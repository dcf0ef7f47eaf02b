// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/nn/gradient_errors.hpp"

using edl::nn::lone_layer;

/// Compares a layer's gradients with central differences, and what must not depend on each other.
template <class L>
void check_gradients(L const& l, edl::shape in, edl::mode mode = edl::mode::training, int batch = 3) {
  auto const* const of_which = __PRETTY_FUNCTION__;
  CAPTURE(of_which);
  REQUIRE(edl::nn::as_layer(l).check(in) == edl::fit::fits);
  auto const of = edl::nn::gradient_errors(l, in, batch, mode);
  CHECK(of.inputs < 1e-7);
  CHECK(of.variables < 1e-7);
  lone_layer<L> h{.l = l, .in = in, .batch = batch, .mode = mode};
  if (h.counts.parameters == 0) return;
  h.value();
  h.backward();
  auto const gradients = h.gradients;
  h.value();
  h.backward(false);
  CHECK(h.gradients == gradients);
}

/// What a layer gives in single precision is what it has given in double.
template <class L>
void check_single(lone_layer<L> const& wide) {
  auto const as_floats = [](std::vector<double> const& of) {
    return std::vector<float>(of.begin(), of.end());
  };
  edl::basic_cpu<float> cpu;
  auto const x = as_floats(wide.x), parameters = as_floats(wide.parameters);
  auto dy = as_floats(wide.dy);
  std::vector<float> y(wide.y.size()), dx(x.size()), gradients(parameters.size()), saved(wide.saved.size()),
      scratch(wide.scratch.size());
  edl::nn::pass<edl::basic_cpu<float>> p{cpu, wide.mode, wide.random, scratch};
  wide.whole.forward(p, {wide.in, wide.out, wide.batch, x, parameters, {}, y, saved});
  wide.whole.backward(p, {wide.in, wide.out, wide.batch, x, y, dy, parameters, {}, dx, gradients, saved});
  auto const near = [](std::vector<float> const& a, std::vector<double> const& b) {
    double most = 0;
    for (double const v : b)
      if (std::isfinite(v)) most = std::max(most, std::abs(v));
    for (std::size_t i = 0; i < a.size(); ++i) {
      bool const same = double(a[i]) == b[i] || (a[i] != a[i] && b[i] != b[i]);
      REQUIRE((same || std::abs(double(a[i]) - b[i]) <= 2e-5 * (1 + most)));
    }
  };
  near(y, wide.y);
  near(dx, wide.dx);
  near(gradients, wide.gradients);
}
