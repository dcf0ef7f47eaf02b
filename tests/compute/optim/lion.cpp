// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/lion.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compute/optim/check.hpp"

namespace lion_test {

using edl::lion;

TEST_CASE("lion: the values of trajectories.py") {
  check::pinned(lion{.learning_rate = 0.05f}, {0.9499999992549419, -1.7499999962747097, 0.2499999962747097});
  check::pinned(lion{.learning_rate = 0.05f, .beta_1 = 0.5f, .beta_2 = 0.75f, .weight_decay = 0.01f},
                {0.947552448042963, -1.7452548688456224, 0.2490011206922701});
}

TEST_CASE("lion: the sign of a mean, and the other mean is remembered") {
  for (float const decay : {0.0f, 0.1f}) {
    lion const o{.weight_decay = decay};
    check::formula(o, [&](std::vector<double> const& g) {
      double const b1 = double(o.beta_1), b2 = double(o.beta_2);
      double mean = 0;  // of all gradients but the last
      for (std::size_t s = 0; s + 1 < g.size(); ++s)
        mean += (1 - b2) * std::pow(b2, double(g.size() - 2 - s)) * g[s];
      double const c = b1 * mean + (1 - b1) * g.back();
      return c > 0 ? 1.0 : c < 0 ? -1.0 : 0.0;
    });
  }
}

TEST_CASE("lion: a step is the rate, whatever the gradient; of 0 it is none, and of a NaN it is one") {
  check::memory<double, lion> m(lion{}, {0, 0, 0, 0});
  m.apply({1e-6, -3, 0, std::numeric_limits<double>::quiet_NaN()}, 0.25);
  CHECK(m.weights[0] == -0.25);
  CHECK(m.weights[1] == 0.25);
  CHECK(m.weights[2] == 0);
  CHECK(std::isnan(m.weights[3]));
}

TEST_CASE("lion: cuts and restarts change no bit; slots") {
  check::same_however_cut(lion{});
  check::same_however_cut(lion{.weight_decay = 0.01f});
  REQUIRE(lion{}.slots().size() == 1);
  CHECK(lion{}.slots()[0].name == "m");
}

}  // namespace lion_test
