// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/rule.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <vector>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/rules.hpp"

namespace rule_test {

TEST_CASE("a rule does what its optimiser does, at the rate it is given") {
  edl::adam const adam{.amsgrad = true};
  edl::rule const bound(adam, edl::polynomial_decay{.rate = 0.5f, .steps = 10});
  edl::update_rule const& rule = bound;
  REQUIRE(rule.slots() == std::vector<std::string>{"m", "v", "v_max"});
  check::memory<float, edl::adam> direct(adam, check::normal<float>(100, 1, 0));
  std::vector<float> weights = direct.weights;
  std::vector<std::vector<float>> slots;
  for (std::size_t s = 0; s < 3; ++s) slots.emplace_back(100, rule.initial(s));
  for (std::uint64_t step = 0; step < 10; ++step) {
    auto const g = check::normal<float>(100, 2, step);
    std::vector<std::span<float>> spans(slots.begin(), slots.end());
    rule.apply(weights, g, spans, rule.learning_rate(step), step);
    direct.apply(g, 0.5f * (1 - float(step) / 10));
  }
  for (std::size_t i = 0; i < 100; ++i)
    REQUIRE(weights[i] == doctest::Approx(direct.weights[i]).epsilon(1e-6));
}

TEST_CASE("a rule without a schedule keeps the optimiser's rate, and slots start as they should") {
  edl::rule const sgd{edl::sgd{.learning_rate = 0.3f}};
  CHECK(sgd.learning_rate(0) == 0.3f);
  CHECK(sgd.learning_rate(99'999) == 0.3f);
  CHECK(sgd.slots().empty());
  edl::rule const adagrad{edl::adagrad{.initial_accumulator = 0.25f}};
  CHECK(adagrad.slots() == std::vector<std::string>{"accumulator"});
  CHECK(adagrad.initial(0) == 0.25f);
}

TEST_CASE("any callable is a schedule") {
  edl::rule const by_lambda(edl::sgd{},
                            [base = 0.5f](std::uint64_t version) { return base / float(1 + version); });
  CHECK(by_lambda.learning_rate(4) == 0.1f);
  edl::rule const by_function(edl::sgd{}, +[](std::uint64_t version) { return version < 2 ? 1.0f : 0.5f; });
  CHECK(by_function.learning_rate(1) == 1.0f);
  CHECK(by_function.learning_rate(2) == 0.5f);
}

}  // namespace rule_test
