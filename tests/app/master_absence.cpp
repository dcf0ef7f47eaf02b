// SPDX-License-Identifier: Apache-2.0
#include "edl/app/master_absence.hpp"

#include <doctest/doctest.h>

namespace master_absence_test {

using edl::app::master_absence;
using std::chrono::seconds;

TEST_CASE("a master that is away is told of every few seconds, and given up after the timeout") {
  master_absence a(seconds(900));
  edl::time_point const start{};
  int lines = 0;
  bool over = false;
  int second = 1;
  for (; !over && second < 2000; ++second) {
    std::string const line = a.missed("connection refused", start, start + seconds(second));
    if (lines == 0 && !line.empty())
      CHECK(line ==
            "waits for the master, which has not answered for 3 s; gives up after 900 s "
            "(--master_timeout): connection refused");
    lines += !line.empty();
    over = a.over(start + seconds(second));
  }
  CHECK(second == 901);
  CHECK(lines == 180);
  CHECK(a.reason() == "the master was away for longer than --master_timeout=900 s: connection refused");
}

TEST_CASE("a master that answers in time is nothing to speak of, and one that comes back is told of once") {
  master_absence a(seconds(10));
  edl::time_point const start{};
  CHECK(a.missed("slow", start, start + seconds(2)).empty());
  CHECK(a.answered(start + seconds(2)).empty());
  CHECK_FALSE(a.missed("gone", start + seconds(100), start + seconds(104)).empty());
  CHECK_FALSE(a.over(start + seconds(109)));
  CHECK(a.answered(start + seconds(109)) == "the master answers again, after 9 s");
  CHECK(a.answered(start + seconds(110)).empty());
  CHECK_FALSE(a.over(start + seconds(500)));
}

}  // namespace master_absence_test
