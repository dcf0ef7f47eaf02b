// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/hashing.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "edl/core/error.hpp"

namespace hashing_test {

using namespace edl::features;

TEST_CASE("texts have the buckets that ElasticDL's and TensorFlow's documents show") {
  hashing const three{3};
  std::vector<std::int64_t> ids;
  for (char const* const text : {"A", "B", "C", "D", "E", "Hello", "TensorFlow", "2.x"})
    ids.push_back(three(text));
  CHECK(ids == std::vector<std::int64_t>{1, 0, 1, 1, 2, 0, 2, 2});
  CHECK(three.size() == 3);
}

TEST_CASE("a number has the bucket of its digits") {
  hashing const many{1'000'003};
  CHECK(many(std::int64_t(-17)) == many("-17"));
  CHECK(many(std::int64_t(0)) == many("0"));
  CHECK(many(std::numeric_limits<std::int64_t>::min()) == many("-9223372036854775808"));
}

TEST_CASE("no bucket is an error") {
  CHECK_THROWS_AS(hashing{0}("a"), edl::usage_error);
  CHECK_THROWS_AS(hashing{-3}("a"), edl::usage_error);
}

TEST_CASE("values are crossed with a separator, so that their border counts") {
  crossing const c{.buckets = 1'000'003};
  CHECK(c({"a", "b"}) == hashing{1'000'003}("a_X_b"));
  CHECK(c({"ab", ""}) != c({"a", "b"}));
  std::string const same = "x";
  CHECK(c({same, same}) == hashing{1'000'003}("x_X_x"));
}

}  // namespace hashing_test
