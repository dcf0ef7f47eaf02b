// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/adam.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "compute/optim/check.hpp"

namespace adam_test {

using edl::adam;

namespace {

/// Algorithm 1 of the paper: means by explicit sums, both corrected. Its ε stands on the corrected root, so
/// it is ours divided by √(1 − β₂ᵗ).
double by_the_paper(adam const& o, std::vector<double> const& g) {
  double const b1 = double(o.beta_1), b2 = double(o.beta_2), t = double(g.size());
  double mean = 0, square = 0, largest = 0;
  for (std::size_t s = 0; s < g.size(); ++s) mean += (1 - b1) * std::pow(b1, t - 1 - double(s)) * g[s];
  for (std::size_t until = o.amsgrad ? 1 : g.size(); until <= g.size(); ++until) {
    square = 0;
    for (std::size_t s = 0; s < until; ++s)
      square += (1 - b2) * std::pow(b2, double(until - 1 - s)) * g[s] * g[s];
    largest = std::max(largest, square);
  }
  double const mean_hat = mean / (1 - std::pow(b1, t)), square_hat = largest / (1 - std::pow(b2, t));
  return mean_hat / (std::sqrt(square_hat) + double(o.epsilon) / std::sqrt(1 - std::pow(b2, t)));
}

}  // namespace

TEST_CASE("adam: the values of trajectories.py") {
  check::pinned(adam{.learning_rate = 0.05f}, {0.8877247456599633, -1.7717343636462417, 0.2711033141509166});
  check::pinned(adam{.learning_rate = 0.05f, .weight_decay = 0.01f},
                {0.8854046313191007, -1.7670156245114128, 0.27013816906488214});
  check::pinned(adam{.learning_rate = 0.05f, .beta_2 = 0.5f, .amsgrad = true},
                {0.8979036399068266, -1.792483034986431, 0.28556228029235026});
}

TEST_CASE("adam: the paper's algorithm, with and without the largest square") {
  for (bool amsgrad : {false, true})
    for (float b2 : {0.5f, 0.999f})
      for (float decay : {0.0f, 0.1f}) {
        adam const o{.beta_2 = b2, .epsilon = 1e-3f, .amsgrad = amsgrad, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) { return by_the_paper(o, g); });
      }
}

TEST_CASE("adam: the first step is the rate, whatever the gradient") {
  check::memory<double, adam> m(adam{.epsilon = 0}, {0, 0, 0});
  m.apply({1e-6, -3, 1e6}, 0.25);
  CHECK(m.weights[0] == doctest::Approx(-0.25));
  CHECK(m.weights[1] == doctest::Approx(0.25));
  CHECK(m.weights[2] == doctest::Approx(-0.25));
}

TEST_CASE("adam: a parameter without a gradient stays, at any step") {
  check::memory<float, adam> m(adam{}, {1, -2});
  m.apply({0, 0}, 0.1f);
  m.step = 1'000'000'000'000;
  m.apply({0, 0}, 0.1f);
  CHECK(m.weights == std::vector<float>{1, -2});
}

TEST_CASE("adam: cuts and restarts change no bit") {
  check::same_however_cut(adam{});
  check::same_however_cut(adam{.weight_decay = 0.01f});
  check::same_however_cut(adam{.beta_2 = 0.5f, .amsgrad = true});
}

TEST_CASE("adam: slots") {
  CHECK(adam{}.slots().size() == 2);
  REQUIRE(adam{.amsgrad = true}.slots().size() == 3);
  CHECK(adam{.amsgrad = true}.slots()[0].name == "m");
  CHECK(adam{.amsgrad = true}.slots()[1].name == "v");
  CHECK(adam{.amsgrad = true}.slots()[2].name == "v_max");
  CHECK(adam{}.learning_rate == 0.001f);
}

}  // namespace adam_test
