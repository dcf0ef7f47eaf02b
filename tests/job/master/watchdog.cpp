// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/watchdog.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace watchdog_test {

using namespace edl::master;
using std::chrono::seconds;

TEST_CASE("what has not moved for the timeout is told, ever more seldom, until it moves") {
  watchdog w(seconds(60));
  time_point const start{};
  std::vector<int> told;
  for (int second = 0; second <= 2000; ++second)
    if (w.look(7, start + seconds(second))) told.push_back(second);
  CHECK(told == std::vector<int>{60, 120, 240, 480, 960, 1560});
  CHECK(w.stuck(start + seconds(2000)));
  CHECK(w.still(start + seconds(2000)) == seconds(2000));
  CHECK_FALSE(w.look(8, start + seconds(2001)));
  CHECK_FALSE(w.stuck(start + seconds(2001)));
  CHECK_FALSE(w.look(8, start + seconds(2060)));
  CHECK(w.look(8, start + seconds(2061)));
}

}  // namespace watchdog_test
