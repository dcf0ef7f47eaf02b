// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/optimizer.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "edl/compute/optim/on_accelerator.hpp"
#include "edl/compute/optim/optimizers.hpp"

namespace optimizer_test {

namespace {

// A user's own: the sign of the gradient, and nothing more than the concept asks for.
struct sign_descent {
  float learning_rate = 0.1f;
  edl::slot_list slots() const { return {}; }
  void apply(std::span<float> weights, edl::view<float> gradients, std::span<std::span<float> const>,
             float rate, std::uint64_t) const {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= gradients[i] > 0 ? rate : -rate;
  }
};
struct no_rate {
  edl::slot_list slots() const { return {}; }
  void apply(std::span<float>, edl::view<float>, std::span<std::span<float> const>, float,
             std::uint64_t) const {}
};

static_assert(edl::optimizer<edl::sgd> && edl::optimizer<edl::adagrad> && edl::optimizer<edl::adam>);
static_assert(edl::optimizer<edl::adamw> && edl::optimizer<edl::rmsprop> && edl::optimizer<edl::lion>);
static_assert(edl::optimizer<edl::lookahead<edl::rmsprop>>);
static_assert(edl::optimizes_on_accelerator<edl::lookahead<edl::adam>>);
static_assert(!edl::optimizes_on_accelerator<edl::lookahead<edl::lion>>);
static_assert(edl::optimizer<sign_descent>);
static_assert(!edl::optimizer<no_rate> && !edl::optimizer<float>);

}  // namespace

TEST_CASE("a list of slots is a range") {
  constexpr edl::slot_list two{edl::slot{"a"}, edl::slot{"b", 0.5f}};
  static_assert(two.size() == 2 && two[1].initial == 0.5f && edl::slot_list{}.size() == 0);
  std::string names;
  for (edl::slot const& s : two) names += s.name;
  CHECK(names == "ab");
}

TEST_CASE("a user's optimiser is a rule like the others") {
  edl::rule const rule{sign_descent{}};
  std::vector<float> w{1, 1};
  rule.apply(w, std::vector<float>{3, -3}, {}, rule.learning_rate(5), 5);
  CHECK(w == std::vector<float>{0.9f, 1.1f});
}

}  // namespace optimizer_test

namespace rates_test {

using edl::rate_of, edl::rates;

TEST_CASE("rates are parts with names and factors above 0, at most sixteen") {
  constexpr rates some{{"conv2d*", 0.1f}, {"dense/kernel,dense/bias", 2.0f}};
  static_assert(some.valid() && some.parts().size() == 2);
  static_assert(some.parts()[1].names == "dense/kernel,dense/bias" && some.parts()[1].factor == 2);
  static_assert(rates{}.valid() && rates{}.parts().empty());
  static_assert(rates{{"conv2d*", 0.1f}}.parts().size() == 1);
  static_assert(!rates{{"conv2d*", 0.0f}}.valid());
  static_assert(!rates{{"conv2d*", -1.0f}}.valid());
  static_assert(!rates{{"", 1.0f}}.valid());
  CHECK_FALSE(rates{{"a", std::numeric_limits<float>::infinity()}}.valid());
  CHECK_FALSE(rates{{"a", std::numeric_limits<float>::quiet_NaN()}}.valid());
  constexpr rate_of a{"a", 1};
  constexpr rates most{a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
  static_assert(most.valid() && most.parts().size() == rates::most);
  constexpr rates more{a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
  static_assert(!more.valid() && more.parts().size() == rates::most);
}

}  // namespace rates_test
