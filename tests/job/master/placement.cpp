// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/placement.hpp"

#include <doctest/doctest.h>

namespace placement_test {

using namespace edl::master;

namespace {

range_place at(std::uint32_t primary, std::optional<std::uint32_t> backup = {}) { return {primary, backup}; }

}  // namespace

TEST_CASE("every range is at home, its backup next door") {
  CHECK(place(3, 3, {0, 1, 2}, 1, {}) == std::vector{at(0), at(1), at(2)});
  CHECK(place(3, 3, {0, 1, 2}, 2, {}) == std::vector{at(0, 1), at(1, 2), at(2, 0)});
  CHECK(place(5, 2, {0, 1}, 1, {}) == std::vector{at(0), at(1), at(0), at(1), at(0)});
  CHECK(place(1, 1, {0}, 2, {}) == std::vector{at(0)});  // nobody is there to be a backup
  CHECK(place(4, 2, {}, 2, {}).empty());
}

TEST_CASE("whoever holds a range serves it while its home is away, and hands it back") {
  range_holders const holders{{0, {0, 1}}, {1, {1, 2}}, {2, {2, 0}}};
  CHECK(place(3, 3, {0, 2}, 2, holders) == std::vector{at(0, 2), at(2, 0), at(2, 0)});
  CHECK(place(3, 3, {0, 1, 2}, 2, holders) == std::vector{at(0, 1), at(1, 2), at(2, 0)});
  CHECK(place(3, 3, {2}, 2, holders) == std::vector{at(2), at(2), at(2)});
}

TEST_CASE("covered: each range has a holder that is there") {
  range_holders const holders{{0, {0, 1}}, {1, {1, 2}}, {2, {2, 0}}};
  CHECK(covered(3, {0, 1, 2}, holders));
  for (std::uint32_t lost : {0, 1, 2}) {
    std::set<std::uint32_t> there{0, 1, 2};
    there.erase(lost);
    CHECK(covered(3, there, holders));
    for (std::uint32_t alone : there) CHECK_FALSE(covered(3, {alone}, holders));
  }
  CHECK_FALSE(covered(4, {0, 1, 2}, holders));
  CHECK_FALSE(covered(1, {0}, {}));
}

}  // namespace placement_test
