// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/asked_features.hpp"

#include <doctest/doctest.h>

#include <thread>

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
    CHECK(inner.names == decltype(inner.names){"needed", "optional"});
  }
  record.integer("there");
  CHECK(outer.names == decltype(outer.names){"there"});
}

}  // namespace asked_features_test
