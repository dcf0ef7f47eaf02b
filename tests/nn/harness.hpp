// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "device/draw.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/nn/carve.hpp"
#include "edl/nn/plan.hpp"

/// One layer by itself, in double, with exactly the memory that it asks for.
template <edl::nn::layer L>
struct harness {
  using vector = std::vector<double>;
  static constexpr double poison = std::numeric_limits<double>::quiet_NaN();

  L l;
  edl::shape in;
  edl::nn::pass_size batch = 3;
  edl::mode mode = edl::mode::training;
  edl::random_stream random{11, 5};

  edl::shape out = l.output(in);
  edl::nn::variable_counts counts = edl::nn::count(l, in);
  vector x = numbers<double>(std::size_t(batch) * in.size(), 1), y = vector(std::size_t(batch) * out.size()),
         dy = numbers<double>(y.size(), 2), dx = vector(x.size()),
         parameters = numbers<double>(counts.parameters, 3), gradients = vector(counts.parameters),
         state = vector(counts.state, 0.7), saved = vector(edl::nn::saved_by(l, in, batch)),
         scratch = vector(edl::nn::scratch_of(l, in, batch));
  edl::basic_cpu<double> cpu;

  void forward() {
    std::ranges::fill(y, poison);
    std::ranges::fill(saved, poison);
    std::ranges::fill(scratch, poison);
    edl::nn::pass<edl::basic_cpu<double>> p{cpu, mode, random, scratch};
    l.forward(p, {in, out, batch, x, parameters, state, y, saved});
  }
  void backward(bool with_dx = true) {
    std::ranges::fill(dx, poison);
    std::ranges::fill(gradients, poison);
    std::ranges::fill(scratch, poison);
    edl::nn::pass<edl::basic_cpu<double>> p{cpu, mode, random, scratch};
    auto spent = dy;  // a layer may leave something else in it
    l.backward(p, {in, out, batch, x, y, spent, parameters, state,
                   with_dx ? std::span(dx) : std::span<double>(), gradients, saved});
  }
  /// Σ y · dy: its derivatives are what `backward` computes.
  double value() {
    auto const carried = state;
    forward();
    state = carried;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  }
  /// The greatest error of `analytic` against central differences over `variables`.
  double error(vector& variables, vector const& analytic) {
    double most = 0;
    std::size_t const stride = variables.size() / 200 + 1;  // of many, some
    for (std::size_t i = 0; i < variables.size(); i += stride) {
      double const at = variables[i], h = 1e-5;
      variables[i] = at + h;
      double const above = value();
      variables[i] = at - h;
      double const below = value();
      variables[i] = at;
      double const e = std::abs((above - below) / (2 * h) - analytic[i]) / (1 + std::abs(analytic[i]));
      if (!(e <= most)) most = e;
    }
    return most;
  }
};

/// Compares a layer's gradients with central differences, and what must not depend on each other.
template <edl::nn::layer L>
void check_gradients(L const& l, edl::shape in, edl::mode mode = edl::mode::training, int batch = 3) {
  REQUIRE(l.check(in) == edl::fit::fits);
  harness<L> h{.l = l, .in = in, .batch = batch, .mode = mode};
  h.value();
  h.backward();
  auto const dx = h.dx, gradients = h.gradients;
  CHECK(h.error(h.x, dx) < 1e-7);
  CHECK(h.error(h.parameters, gradients) < 1e-7);
  if (h.counts.parameters == 0) return;
  h.value();
  h.backward(false);
  CHECK(h.gradients == gradients);
}
