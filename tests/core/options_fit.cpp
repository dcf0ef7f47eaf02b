// SPDX-License-Identifier: Apache-2.0
#include "edl/core/options_fit.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "edl/compute/data/augment.hpp"
#include "edl/compute/optim/optimizers.hpp"
#include "edl/compute/optim/schedule.hpp"

namespace options_fit_test {

namespace {

struct silent {};
struct strict {
  int n = 1;
  constexpr bool options_fit() const { return n > 0; }
};

constexpr float none = std::numeric_limits<float>::quiet_NaN(),
                endless = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("a part says itself whether its options are in their ranges; one that says nothing takes all") {
  static_assert(edl::options_fit(silent{}));
  static_assert(edl::options_fit(strict{}));
  static_assert(!edl::options_fit(strict{.n = 0}));
  CHECK(edl::is_amount(0));
  CHECK(edl::is_share(0));
  for (float const x : {-0.1f, none, endless, -endless}) {
    CHECK_FALSE(edl::is_amount(x));
    CHECK_FALSE(edl::is_share(x));
  }
  CHECK(edl::is_amount(1));
  CHECK_FALSE(edl::is_share(1));
}

TEST_CASE_TEMPLATE("rates and decays of an optimiser are finite and not below 0", O, edl::sgd, edl::adam,
                   edl::adamw, edl::rmsprop, edl::lion, edl::adagrad, edl::lamb, edl::muon) {
  CHECK(edl::options_fit(O{}));
  CHECK(edl::options_fit(O{.learning_rate = 0}));
  for (float const x : {-0.1f, none, endless}) {
    CHECK_FALSE(edl::options_fit(O{.learning_rate = x}));
    CHECK_FALSE(edl::options_fit(O{.weight_decay = x}));
  }
}

TEST_CASE("shares of an optimiser are below 1, and numbers that divide are not below 0") {
  CHECK_FALSE(edl::options_fit(edl::sgd{.momentum = 1}));
  CHECK_FALSE(edl::options_fit(edl::adam{.beta_1 = 1}));
  CHECK_FALSE(edl::options_fit(edl::adam{.beta_2 = -0.1f}));
  CHECK_FALSE(edl::options_fit(edl::adamw{.epsilon = -1}));
  CHECK_FALSE(edl::options_fit(edl::rmsprop{.rho = 1}));
  CHECK_FALSE(edl::options_fit(edl::rmsprop{.momentum = 2}));
  CHECK_FALSE(edl::options_fit(edl::lion{.beta_2 = 1}));
  CHECK_FALSE(edl::options_fit(edl::adagrad{.initial_accumulator = -1}));
  CHECK_FALSE(edl::options_fit(edl::lamb{.beta_1 = 2}));
  CHECK_FALSE(edl::options_fit(edl::lamb{.epsilon = -1}));
  CHECK_FALSE(edl::options_fit(edl::muon{.momentum = 3}));
  CHECK_FALSE(edl::options_fit(edl::muon{.newton_schulz_steps = 0}));
  CHECK_FALSE(edl::options_fit(edl::muon{.reset_norms = {.every = 2, .steps = 0}}));
  using ahead = edl::lookahead<edl::sgd>;
  CHECK(edl::options_fit(ahead{}));
  CHECK(edl::options_fit(ahead{.keep = 1}));
  CHECK_FALSE(edl::options_fit(ahead{.keep = 1.5f}));
  CHECK_FALSE(edl::options_fit(ahead{.every = 0}));
  CHECK_FALSE(edl::options_fit(ahead{.optimizer = {.momentum = 1}}));
}

TEST_CASE("rates of a schedule are finite and not below 0, and what divides is above 0") {
  CHECK(edl::options_fit(edl::constant_rate{0}));
  CHECK_FALSE(edl::options_fit(edl::constant_rate{none}));
  CHECK(edl::options_fit(edl::piecewise_constant{.rate = 0.1f, .then = {{5, 0.01f}}}));
  CHECK_FALSE(edl::options_fit(edl::piecewise_constant{.rate = 0.1f, .then = {{5, -0.01f}}}));
  CHECK(edl::options_fit(edl::exponential_decay{.rate = 1, .factor = 0.5f, .steps = 1}));
  CHECK_FALSE(edl::options_fit(edl::exponential_decay{.rate = 1, .factor = 0.5f, .steps = 0}));
  CHECK_FALSE(edl::options_fit(edl::exponential_decay{.rate = 1, .factor = -1, .steps = 1}));
  CHECK(edl::options_fit(edl::cosine_decay{.rate = 1, .steps = 9}));
  CHECK_FALSE(edl::options_fit(edl::cosine_decay{.rate = 1, .steps = 9, .end = -1}));
  CHECK(edl::options_fit(edl::cosine_restarts{.rate = 1, .steps = 9}));
  CHECK_FALSE(edl::options_fit(edl::cosine_restarts{.rate = 1, .steps = 9, .factor = 0}));
  CHECK_FALSE(edl::options_fit(edl::polynomial_decay{.rate = -1, .steps = 9}));
  CHECK(edl::options_fit(edl::triangle{.rate = 1, .peak = 3, .steps = 9}));
  CHECK_FALSE(edl::options_fit(edl::triangle{.rate = 1, .peak = 10, .steps = 9}));
  using warm = edl::warmup<edl::constant_rate>;
  CHECK(edl::options_fit(warm{.steps = 3, .then = {1}}));
  CHECK_FALSE(edl::options_fit(warm{.steps = 3, .then = {-1}}));
}

TEST_CASE("the sizes of an augmentation are not below 0, within a list, too") {
  CHECK(edl::options_fit(
      edl::augment(edl::random_crop{.padding = 0}, edl::random_flip{}, edl::cutout{.size = 0})));
  CHECK_FALSE(edl::options_fit(edl::augment(edl::random_flip{}, edl::cutout{.size = -1})));
  CHECK_FALSE(edl::options_fit(edl::random_crop{.padding = -1}));
  CHECK(edl::options_fit(edl::random_jitter{.brightness = 0, .contrast = 0}));
  CHECK_FALSE(edl::options_fit(edl::random_jitter{.contrast = 1}));
}

}  // namespace options_fit_test
