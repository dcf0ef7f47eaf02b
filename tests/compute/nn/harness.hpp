// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

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
