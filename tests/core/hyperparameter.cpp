// SPDX-License-Identifier: Apache-2.0
#include "edl/core/hyperparameter.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "edl/core/error.hpp"

namespace hyperparameter_test {

namespace {

struct own {
  edl::hyperparameter<float> rate{0.25f, "a rate", 0, 1};
  int plain = 3;
};
struct another {
  float rate = 0.25f;
};

}  // namespace

TEST_CASE("a hyperparameter reads as its value") {
  own h;
  CHECK(h.rate == 0.25f);
  CHECK(2 * h.rate == 0.5f);
  h.rate.value = 0.5f;
  float const f{h.rate};
  CHECK(f == 0.5f);
}

TEST_CASE("a setting is a constant, or the value of a hyperparameter") {
  constexpr edl::setting constant = 0.1f;
  static_assert(constant.is_in(0, 1) && !constant.is_in(0.2f, 1));
  CHECK(constant.resolve({}, "it", 0, 1) == 0.1f);

  constexpr edl::setting set = edl::set_by<&own::rate>;
  static_assert(!set.constant() && set.is_in(5, 6));
  own h;
  CHECK(set.resolve(edl::hyperparameter_view(h), "it", 0, 1) == 0.25f);
  h.rate.value = 0.75f;
  CHECK(set.resolve(edl::hyperparameter_view(h), "it", 0, 1) == 0.75f);
  CHECK(edl::set_by<&own::plain>.resolve(edl::hyperparameter_view(h), "it", 0, 9) == 3);
}

TEST_CASE("a setting out of range, or of another model, is refused") {
  own h;
  h.rate.value = 1;
  CHECK_THROWS_WITH_AS(
      edl::set_by<&own::rate>.resolve(edl::hyperparameter_view(h), "the rate of a dropout", 0, 1),
      "--set: the rate of a dropout is 1: expected at least 0 and less than 1", edl::usage_error);
  CHECK_THROWS_WITH_AS(
      edl::set_by<&own::rate>.resolve(edl::hyperparameter_view(h), "it", 2, edl::setting::unbounded),
      "--set: it is 1: expected at least 2", edl::usage_error);
  h.rate.value = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(edl::set_by<&own::rate>.resolve(edl::hyperparameter_view(h), "it",
                                                       -edl::setting::unbounded, edl::setting::unbounded),
                       "--set: it is inf: expected a finite number", edl::usage_error);
  CHECK_THROWS_AS(edl::set_by<&another::rate>.resolve(edl::hyperparameter_view(h), "it", 0, 1), edl::error);
  CHECK_THROWS_AS(edl::set_by<&own::rate>.resolve({}, "it", 0, 1), edl::error);
}

}  // namespace hyperparameter_test
