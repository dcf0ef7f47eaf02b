// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/sgd.hpp"

#include <doctest/doctest.h>

#include "compute/optim/check.hpp"

namespace sgd_test {

using edl::sgd;

TEST_CASE("sgd: the values of trajectories.py") {
  check::pinned(sgd{.learning_rate = 0.1f}, {0.7910403661138111, -1.7321729414981457, 0.4345441574672416});
  check::pinned(sgd{.learning_rate = 0.1f, .weight_decay = 0.01f},
                {0.7865267108628557, -1.7231530892139457, 0.43228926897836883});
  check::pinned(sgd{.learning_rate = 0.1f, .momentum = 0.9f},
                {0.6126572808966861, -1.354850206055099, 0.3400079079563921});
  check::pinned(sgd{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true},
                {0.4627703452881655, -1.1881160033041045, 0.2996547539533039});
}

TEST_CASE("sgd: momentum is the sum of past gradients, each weighed by a power") {
  for (float mu : {0.0f, 0.5f, 0.9f})
    for (bool nesterov : {false, true})
      for (float decay : {0.0f, 0.1f}) {
        auto const velocity = [mu](std::vector<double> const& g) {
          double v = 0;
          for (std::size_t s = 0; s < g.size(); ++s)
            v += std::pow(double(mu), double(g.size() - 1 - s)) * g[s];
          return v;
        };
        sgd const o{.momentum = mu, .nesterov = nesterov, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) {
          return nesterov ? g.back() + double(mu) * velocity(g) : velocity(g);
        });
      }
}

TEST_CASE("sgd: cuts and restarts change no bit") {
  check::same_however_cut(sgd{});
  check::same_however_cut(sgd{.weight_decay = 0.01f});
  check::same_however_cut(sgd{.momentum = 0.9f});
  check::same_however_cut(sgd{.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f});
}

TEST_CASE("sgd: remembers only what it needs, and the defaults are Keras'") {
  CHECK(sgd{}.slots().size() == 0);
  REQUIRE(sgd{.momentum = 0.5f}.slots().size() == 1);
  CHECK(sgd{.momentum = 0.5f}.slots()[0].name == "momentum");
  CHECK(sgd{.momentum = 0.5f}.slots()[0].initial == 0);
  CHECK(sgd{}.learning_rate == 0.01f);
}

TEST_CASE("sgd: nothing to do") {
  sgd{}.apply(std::span<float>{}, edl::view<float>{}, std::span<std::span<float> const>{}, 0.1f, 0);
}

}  // namespace sgd_test
