// SPDX-License-Identifier: Apache-2.0
#include "edl/core/counted.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace counted_test {

TEST_CASE("one of a kind is told apart from none and several") {
  CHECK(edl::counted(0, "record") == "0 records");
  CHECK(edl::counted(1, "record") == "1 record");
  CHECK(edl::counted(std::uint64_t{2}, "record") == "2 records");
  CHECK(edl::counted(1, "class", "classes") == "1 class");
  CHECK(edl::counted(3, "class", "classes") == "3 classes");
}

}  // namespace counted_test
