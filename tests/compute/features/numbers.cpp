// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/numbers.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "edl/core/error.hpp"

namespace numbers_test {

using namespace edl::features;

TEST_CASE("a number is moved and divided, and a column that never changes is only moved") {
  normalization const n{.subtract = 3, .divide = 4};
  CHECK(n(3) == 0);
  CHECK(n(5) == 0.5f);
  CHECK(n(7) == 1);
  CHECK(normalization{.subtract = 3, .divide = 0}(5) == 2);
}

TEST_CASE("buckets hold their lower boundaries, as ElasticDL's tutorial shows") {
  constexpr discretization age{{20, 30, 40, 50}};
  static_assert(age.size() == 5 && age(20) == 1);
  std::vector<std::int64_t> ids;
  for (float const x : {34, 45, 23, 67, 15, 37, 52, 47}) ids.push_back(age(x));
  CHECK(ids == std::vector<std::int64_t>{2, 3, 1, 4, 0, 2, 4, 3});
  CHECK(age(std::numeric_limits<float>::quiet_NaN()) == 4);
  loaded_discretization const same({20, 30, 40, 50});
  CHECK(same(45) == 3);
  CHECK(same.size() == 5);
  CHECK_THROWS_AS(loaded_discretization({20, 10}), edl::usage_error);
}

TEST_CASE("logarithms are rounded to ids, and what has none is another id") {
  log_round const r{.buckets = 16, .base = 2, .otherwise = 0};
  std::vector<std::int64_t> ids;
  for (double const x : {1.2, 1.6, 0.2, 3.1, 100.0}) ids.push_back(r(x));
  CHECK(ids == std::vector<std::int64_t>{0, 1, 0, 2, 7});
  log_round const other{.buckets = 4, .base = 10, .otherwise = 3};
  CHECK(other(0) == 3);   // -infinity
  CHECK(other(-1) == 3);  // none
  CHECK(other(1e9) == 3);
  CHECK(other(10) == 1);
  CHECK(log_round{.buckets = 9}(std::exp(2.0)) == 2);
}

TEST_CASE("numbers are rounded to ids, halves to the even one") {
  round_identity const r{.most = 5};
  std::vector<std::int64_t> ids;
  for (double const x : {1.2, 1.6, 0.2, 3.1, 4.9, 2.5, 3.5, 5.4, 5.6, -0.4, -1.0}) ids.push_back(r(x));
  CHECK(ids == std::vector<std::int64_t>{1, 2, 0, 3, 5, 2, 4, 5, 0, 0, 0});
  CHECK(round_identity{.most = 5, .otherwise = 2}(NAN) == 2);
  CHECK(r.size() == 6);
}

TEST_CASE("a text is a number, another one where it is empty, or an error that shows it") {
  CHECK(to_number("12", -1.0f) == 12);
  CHECK(to_number(" -1.5e1\r\n", 0.0f) == -15);
  CHECK(to_number("+3", std::int64_t(0)) == 3);
  CHECK(to_number("", -1.0f) == -1);
  CHECK(to_number("  ", std::int64_t(7)) == 7);
  CHECK_THROWS_WITH_AS(to_number("1x", 0.0f), "'1x' is no number", edl::data_error);
  CHECK_THROWS_WITH_AS(to_number("1.5", std::int64_t(0)), "'1.5' is no whole number of 64 bits",
                       edl::data_error);
  CHECK_THROWS_AS(to_number("99999999999999999999", std::int64_t(0)), edl::data_error);
}

}  // namespace numbers_test
