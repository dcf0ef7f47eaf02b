// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/adagrad.hpp"

#include <doctest/doctest.h>

#include "compute/optim/check.hpp"

namespace adagrad_test {

using edl::adagrad;

TEST_CASE("adagrad: the values of trajectories.py") {
  check::pinned(adagrad{.learning_rate = 0.5f},
                {0.41397899218765094, -0.8341490008432308, -0.014599658333999344});
}

TEST_CASE("adagrad: the last gradient by the root of the sum of squares") {
  for (float initial : {0.0f, 0.1f, 2.0f})
    for (float decay : {0.0f, 0.1f})
      check::formula(adagrad{.initial_accumulator = initial, .epsilon = 1e-3f, .weight_decay = decay},
                     [initial](std::vector<double> const& g) {
                       double squares = double(initial);
                       for (double each : g) squares += each * each;
                       return g.back() / (std::sqrt(squares) + double(1e-3f));
                     });
}

TEST_CASE("adagrad: cuts and restarts change no bit") {
  check::same_however_cut(adagrad{});
  check::same_however_cut(adagrad{.initial_accumulator = 0, .weight_decay = 0.01f});
}

TEST_CASE("adagrad: the accumulator starts as it is told") {
  REQUIRE(adagrad{}.slots().size() == 1);
  CHECK(adagrad{}.slots()[0].name == "accumulator");
  CHECK(adagrad{}.slots()[0].initial == 0.1f);
  CHECK(adagrad{.initial_accumulator = 0.5f}.slots()[0].initial == 0.5f);
  CHECK(adagrad{}.learning_rate == 0.001f);
}

}  // namespace adagrad_test
