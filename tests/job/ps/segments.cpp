// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/segments.hpp"

#include <doctest/doctest.h>

#include "edl/job/ps/snapshot.hpp"
#include "job/ps/small_store.hpp"

namespace segments_test {

using namespace small_store;

TEST_CASE("segments cover a range when they lie side by side") {
  CHECK(segments::cover({{{0, 4}, 0, {}}, {{4, 6}, 0, {}}}, {0, 6}));
  CHECK(segments::cover({{{6, 6}, 0, {}}}, {6, 6}));
  CHECK_FALSE(segments::cover({}, {6, 6}));
  CHECK_FALSE(segments::cover({{{0, 4}, 0, {}}}, {0, 6}));
  CHECK_FALSE(segments::cover({{{0, 4}, 0, {}}, {{5, 6}, 0, {}}}, {0, 6}));
}

}  // namespace segments_test
