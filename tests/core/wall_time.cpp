// SPDX-License-Identifier: Apache-2.0
#include "edl/core/wall_time.hpp"

#include <doctest/doctest.h>

namespace wall_time_test {

using namespace edl;

TEST_CASE("times are read as they are written") {
  CHECK(seconds_of("1970-01-02T00:00:01Z") == 86401);
  CHECK(stamp_of(1'795'000'000) == "2026-11-18T11:06:40Z");
  for (double const t : {0.0, 1'795'000'000.0, 253402300799.0}) CHECK(seconds_of(stamp_of(t)) == t);
  CHECK(seconds_of("2026-11-18T11:06:40.250000Z").value() == doctest::Approx(1'795'000'000.25));
  CHECK(stamp_of(1.5, true) == "1970-01-01T00:00:01.500000Z");
  for (char const* wrong :
       {"", "Z", "2026-11-18", "2026-13-18T12:26:40Z", "2026-11-18T25:26:40Z", "2026-11-18T12:26:40",
        "2026-11-18T12:26:40+01:00", "2026-11-18T12:26:40.Z", "2026-02-30T00:00:00Z"})
    CHECK_FALSE(seconds_of(wrong).has_value());
  CHECK(stamp_of(-1) == "1970-01-01T00:00:00Z");
  CHECK(stamp_of(1e300).size() == 20);
}

}  // namespace wall_time_test
