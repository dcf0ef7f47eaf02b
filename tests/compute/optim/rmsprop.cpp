// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/rmsprop.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "compute/optim/check.hpp"

namespace rmsprop_test {

using edl::rmsprop;

namespace {

/// The step after these gradients, all means by explicit sums.
double by_sums(rmsprop const& o, std::vector<double> const& g) {
  double const rho = double(o.rho);
  double buffer = 0;
  for (std::size_t t = 1; t <= g.size(); ++t) {
    double square = 0, mean = 0;
    for (std::size_t s = 0; s < t; ++s) {
      double const weight = (1 - rho) * std::pow(rho, double(t - 1 - s));
      square += weight * g[s] * g[s];
      mean += weight * g[s];
    }
    if (o.centered) square -= mean * mean;
    buffer = double(o.momentum) * buffer + g[t - 1] / (std::sqrt(square) + double(o.epsilon));
  }
  return buffer;
}

}  // namespace

TEST_CASE("rmsprop: the values of trajectories.py") {
  check::pinned(rmsprop{.learning_rate = 0.05f},
                {0.7783629401052947, -1.534953446825992, 0.10778831749839131});
  check::pinned(rmsprop{.learning_rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f},
                {0.38407521251458504, -0.7110652094470857, -0.4260795780842104});
  check::pinned(rmsprop{.learning_rate = 0.05f, .centered = true},
                {0.7601968722914771, -1.4838627692880069, 0.07859315972271709});
}

TEST_CASE("rmsprop: the formula, with and without momentum, center and weight decay") {
  for (bool const centered : {false, true})
    for (float const momentum : {0.0f, 0.5f})
      for (float const decay : {0.0f, 0.1f}) {
        rmsprop const o{.momentum = momentum, .epsilon = 1e-2f, .centered = centered, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) { return by_sums(o, g); });
      }
}

TEST_CASE("rmsprop: a gradient that never changes is no root of something below 0") {
  check::memory<float, rmsprop> m(rmsprop{.rho = 0.5f, .centered = true}, {1, 1});
  for (int t = 0; t < 200; ++t) m.apply({0.1f, 1e-3f}, 1e-8f);
  for (float const w : m.weights) CHECK(std::isfinite(w));
}

TEST_CASE("rmsprop: cuts and restarts change no bit") {
  check::same_however_cut(rmsprop{});
  check::same_however_cut(rmsprop{.momentum = 0.9f, .weight_decay = 0.01f});
  check::same_however_cut(rmsprop{.momentum = 0.9f, .centered = true});
}

TEST_CASE("rmsprop: slots") {
  CHECK(rmsprop{}.slots().size() == 1);
  CHECK(rmsprop{.centered = true}.slots()[1].name == "mean");
  CHECK(rmsprop{.momentum = 0.9f}.slots()[1].name == "momentum");
  REQUIRE(rmsprop{.momentum = 0.9f, .centered = true}.slots().size() == 3);
  CHECK(rmsprop{.momentum = 0.9f, .centered = true}.slots()[2].name == "momentum");
}

}  // namespace rmsprop_test
