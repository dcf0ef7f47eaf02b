// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "edl/compute/nn/expression/loss.hpp"
#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace check {

/// n numbers from a normal distribution.
template <class T>
std::vector<T> normal(std::size_t n, std::uint64_t seed, double scale = 1) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = T(scale * edl::random_stream{seed, 0}.normal(i));
  return out;
}

/// The labels of a loss.
template <class Loss>
using labels_of = std::vector<typename decltype(edl::nn::as_loss(std::declval<Loss const&>()))::label>;

template <class Loss, class T>
double value(Loss const& loss, edl::shape output, int batch, std::vector<T> const& x,
             labels_of<Loss> const& y) {
  return edl::nn::as_loss(loss)(output, batch, edl::view<T>(x),
                                edl::view<typename labels_of<Loss>::value_type>(y), {});
}

/// The gradient against central differences in double; the loss with it and without it is the same.
template <class Loss>
void gradient(Loss const& loss, edl::shape output, int batch, std::vector<double> x,
              labels_of<Loss> const& y) {
  std::vector<double> dx(x.size(), 1e30);  // overwritten, not added to
  double const with = edl::nn::as_loss(loss)(
      output, batch, edl::view<double>(x), edl::view<typename labels_of<Loss>::value_type>(y), std::span(dx));
  CHECK(with == value(loss, output, batch, x, y));
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const h = 1e-5, at = x[i];
    x[i] = at + h;
    double const up = value(loss, output, batch, x, y);
    x[i] = at - h;
    double const down = value(loss, output, batch, x, y);
    x[i] = at;
    REQUIRE(std::abs(dx[i] - (up - down) / (2 * h)) < 1e-9);
  }
}

}  // namespace check
