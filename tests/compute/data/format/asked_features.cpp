// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/asked_features.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/error.hpp"

namespace asked_features_test {

TEST_CASE("what a thread asks records for is noted while that is wanted, by it alone") {
  edl::example record;
  edl::example_builder(record).integer("there", 7);
  record.contains("before");
  edl::asked_features outer;
  CHECK(record.contains("there"));
  {
    edl::asked_features inner;
    CHECK_FALSE(record.contains("optional"));
    CHECK_THROWS_AS(record.bytes("needed"), edl::data_error);
    std::thread([&] { record.contains("of another thread"); }).join();
    CHECK(inner.all.size() == 2);
    CHECK(inner.all.at("optional").kind == edl::example::kind::none);
    CHECK(inner.all.at("needed").kind == edl::example::kind::strings);
    CHECK(inner.all.at("needed").place == 1);
  }
  record.integer("there");
  CHECK(outer.all.size() == 1);
  CHECK(outer.all.at("there").kind == edl::example::kind::integers);
  CHECK(record.floating("there") == 7);
  CHECK(outer.all.at("there").kind == edl::example::kind::floats);  // which whole numbers are, too
  CHECK_THROWS_AS(record.bytes("there"), edl::data_error);
  CHECK(outer.all.at("there").kind == edl::example::kind::none);  // now a text, now a number
  CHECK_THROWS_AS(record.floats("there", {2, 3}), edl::data_error);
  CHECK(outer.all.at("there").extents == std::vector<std::size_t>{2, 3});
}

}  // namespace asked_features_test
