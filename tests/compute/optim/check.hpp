// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/random.hpp"

namespace check {

/// Weights and slots of an optimiser, and steps over a range of them.
template <class T, class Optimizer>
struct memory {
  Optimizer optimizer;
  std::vector<T> weights;
  std::vector<std::vector<T>> slots;
  std::uint64_t step = 0;

  memory(Optimizer o, std::vector<T> w) : optimizer(o), weights(std::move(w)) {
    for (edl::slot const& s : optimizer.slots()) slots.emplace_back(weights.size(), T(s.initial));
  }

  void apply(std::vector<T> const& gradients, T rate, std::size_t begin, std::size_t end) {
    std::vector<std::span<T>> spans;
    for (auto& s : slots) spans.push_back(std::span<T>(s).subspan(begin, end - begin));
    optimizer.apply(std::span<T>(weights).subspan(begin, end - begin),
                    edl::view<T>(gradients).subspan(begin, end - begin),
                    std::span<std::span<T> const>(spans.data(), spans.size()), rate, step);
  }

  void apply(std::vector<T> const& gradients, T rate) {
    apply(gradients, rate, 0, weights.size());
    ++step;
  }
};

template <class T>
std::vector<T> normal(std::size_t n, std::uint64_t seed, std::uint64_t step) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = T(edl::random_stream{seed, step}.normal(i));
  return out;
}

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::array<std::byte, sizeof(T)>>(a[i]) !=
        std::bit_cast<std::array<std::byte, sizeof(T)>>(b[i]))
      return false;
  return true;
}

/// The five steps of trajectories.py, in double and in float.
template <class Optimizer>
void pinned(Optimizer const& o, std::array<double, 3> const& expected) {
  auto const run = [&]<class T>(T, double tolerance) {
    memory<T, Optimizer> m(o, {T(1), T(-2), T(0.5)});
    for (int t = 0; t < 5; ++t) {
      std::vector<T> g(3);
      for (std::size_t i = 0; i < 3; ++i)
        g[i] = m.weights[i] / 4 + T(std::array{0.3, -0.1, 0.02}[i]) * T(t % 2 ? -1 : 1) * T(t + 1);
      m.apply(g, T(o.learning_rate));
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(double(m.weights[i]) - expected[i]) < tolerance);
  };
  run(double{}, 1e-13);
  run(float{}, 2e-6);
}

/// Against a formula for one weight: (gradients so far, the last one included) → the step that is subtracted
/// at rate 1, without weight decay. Rates change from step to step.
template <class Optimizer, class Formula>
void formula(Optimizer const& o, Formula const& delta) {
  std::size_t const n = 37;
  memory<double, Optimizer> wide(o, normal<double>(n, 1, 0));
  std::vector<double> const start = wide.weights;
  memory<float, Optimizer> narrow(o, std::vector<float>(start.begin(), start.end()));
  std::vector<double> expected = start;
  std::vector<std::vector<double>> past(n);
  for (int t = 0; t < 60; ++t) {
    auto const g = normal<double>(n, 2, std::uint64_t(t));
    double const rate = double(float(0.05 / (1 + 0.1 * t)));
    wide.apply(g, rate);
    narrow.apply(std::vector<float>(g.begin(), g.end()), float(rate));
    for (std::size_t i = 0; i < n; ++i) {
      past[i].push_back(g[i]);
      expected[i] -= rate * (delta(past[i]) + double(o.weight_decay) * expected[i]);
    }
  }
  double moved = 0;
  for (std::size_t i = 0; i < n; ++i) {
    REQUIRE(std::abs(wide.weights[i] - expected[i]) < 1e-11);
    REQUIRE(std::abs(double(narrow.weights[i]) - expected[i]) < 2e-5);
    moved += std::abs(expected[i] - start[i]);
  }
  CHECK(moved > 1);
}

/// Any cut into ranges gives the same bits, and so does a run that is stopped, stored and taken up again.
template <class Optimizer>
void same_however_cut(Optimizer const& o) {
  std::size_t const n = 1003;
  float const rate = 0.03f;
  memory<float, Optimizer> whole(o, normal<float>(n, 3, 0)), cut = whole, resumed = whole;
  std::size_t const cuts[] = {0, 1, 1, 8, 13, 44, 45, 300, 999, n};
  for (int t = 0; t < 12; ++t) {
    auto const g = normal<float>(n, 4, std::uint64_t(t));
    whole.apply(g, rate);
    for (std::size_t c = 0; c + 1 < std::size(cuts); ++c) cut.apply(g, rate, cuts[c], cuts[c + 1]);
    ++cut.step;
    if (t == 5) {
      memory<float, Optimizer> restored(o, resumed.weights);
      restored.slots = resumed.slots;
      restored.step = resumed.step;
      resumed = restored;
    }
    resumed.apply(g, rate);
  }
  CHECK(same_bits(whole.weights, cut.weights));
  CHECK(same_bits(whole.weights, resumed.weights));
  for (std::size_t s = 0; s < whole.slots.size(); ++s) CHECK(same_bits(whole.slots[s], cut.slots[s]));
  CHECK(!same_bits(whole.weights, normal<float>(n, 3, 0)));
}

}  // namespace check
