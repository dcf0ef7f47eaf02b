// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/lamb.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "compute/optim/check.hpp"
#include "compute/optim/whole.hpp"
#include "edl/compute/optim/adam.hpp"
#include "edl/compute/optim/lookahead.hpp"
#include "edl/compute/optim/moving_average.hpp"
#include "edl/compute/optim/whole_optimizer.hpp"
#include "edl/core/error.hpp"

namespace lamb_test {

using edl::lamb;

namespace {

double norm(std::vector<double> const& of) {
  return std::sqrt(std::inner_product(of.begin(), of.end(), of.begin(), 0.0));
}

/// Algorithm 2 of the paper, as it stands there, for one variable.
struct paper {
  double beta_1, beta_2, epsilon, decay;
  std::vector<double> w;
  std::vector<double> m = std::vector<double>(w.size()), v = m;
  int t = 0;

  void step(std::vector<double> const& g, double rate) {
    ++t;
    std::vector<double> u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
      v[i] = beta_2 * v[i] + (1 - beta_2) * g[i] * g[i];
      double const mean = m[i] / (1 - std::pow(beta_1, t)), square = v[i] / (1 - std::pow(beta_2, t));
      u[i] = mean / (std::sqrt(square) + epsilon) + decay * w[i];
    }
    double const ratio = norm(w) / norm(u);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * u[i];
  }
};

template <class T>
double furthest(std::vector<T> const& a, std::vector<double> const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

}  // namespace

static_assert(edl::whole_optimizer<lamb> && edl::whole_optimizer<edl::lookahead<lamb>>);
static_assert(!edl::whole_optimizer<edl::adam> && !edl::whole_optimizer<edl::lookahead<edl::adam>>);

TEST_CASE("lamb: the paper's algorithm, in double and in float") {
  for (float const decay : {0.0f, 0.1f}) {
    lamb const o{.weight_decay = decay};
    std::size_t const n = 37;
    check::memory<double, lamb> wide(o, check::normal<double>(n, 1, 0));
    check::memory<float, lamb> narrow(o, {wide.weights.begin(), wide.weights.end()});
    paper p{double(o.beta_1), double(o.beta_2), double(o.epsilon), double(decay), wide.weights};
    for (std::uint64_t t = 0; t < 60; ++t) {
      auto const g = check::normal<double>(n, 2, t);
      double const rate = double(float(0.05 / (1 + 0.1 * double(t))));
      whole::step(wide, g, rate);
      whole::step(narrow, std::vector<float>(g.begin(), g.end()), float(rate));
      p.step(g, rate);
      REQUIRE(furthest(wide.weights, p.w) < 1e-11);
      REQUIRE(furthest(narrow.weights, p.w) < 2e-5);
    }
    CHECK(furthest(check::normal<double>(n, 1, 0), p.w) > 0.1);
  }
}

TEST_CASE("lamb: a step is a share of the variable's norm, which is the rate") {
  for (double const size : {1e-3, 1.0, 1e4}) {
    check::memory<double, lamb> m(lamb{}, std::vector<double>(100, size));
    whole::step(m, check::normal<double>(100, 1, 0), 0.125);
    double moved = 0;
    for (double const w : m.weights) moved += (w - size) * (w - size);
    CHECK(std::sqrt(moved) == doctest::Approx(0.125 * size * 10));
  }
}

TEST_CASE("lamb: of what is zero, and without a gradient, the ratio is 1") {
  check::memory<double, lamb> zero(lamb{}, {0, 0});
  whole::step(zero, {2, -3}, 0.25);
  CHECK(zero.weights[0] == doctest::Approx(-0.25));
  CHECK(zero.weights[1] == doctest::Approx(0.25));
  check::memory<double, lamb> still(lamb{}, {4, -5});
  whole::step(still, {0, 0}, 0.25);
  CHECK(still.weights == std::vector<double>{4, -5});
}

TEST_CASE("lamb: what is no variable has a ratio of 1, and the same bits in any cut") {
  check::same_however_cut(lamb{.weight_decay = 0.1f});
  check::memory<double, lamb> m(lamb{}, {100, 100});
  m.apply({1, -1}, 0.25);
  CHECK(m.weights[0] == doctest::Approx(99.75));
}

TEST_CASE("lamb: variables are whole in any range and under a moving average, and biases are spared") {
  whole::same_however_cut(lamb{.weight_decay = 0.1f});
  whole::same_however_cut(edl::lookahead<lamb>{.optimizer = {.weight_decay = 0.1f}, .every = 3});
  whole::spares<lamb>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .decay_biases = false}, {});
  whole::spares<lamb>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .exclude_from_weight_decay = "dense/k*"},
                      {}, [](std::size_t i) { return i < 2700; });
}

}  // namespace lamb_test
