// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/speed_log.hpp"

#include <doctest/doctest.h>

namespace speed_log_test {

using namespace edl::master;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct job {
  speed_log log;
  time_point now{};

  // So many workers complete a task of 100 records each, `each` after the other.
  void work(std::uint32_t workers, int rounds, duration each = seconds(1)) {
    for (int r = 0; r < rounds; ++r) {
      now += each;
      for (std::uint32_t id = 0; id < workers; ++id) log.completed(id, 100, now);
    }
  }
  double speed(std::uint32_t workers) const {
    auto const it = log.all().find(workers);
    return it == log.all().end() ? 0 : it->second;
  }
};

}  // namespace

TEST_CASE("a worker that has completed nothing is none") {
  job j;
  j.work(2, 3);
  // The second brings nothing any more: nobody knows whose speed that would be.
  j.work(1, 20);
  CHECK(j.speed(1) == 0);
  CHECK(j.speed(2) == 0);
  j.log.gone(1);
  j.work(1, 8);
  CHECK(j.speed(1) == doctest::Approx(100));
}

TEST_CASE("few tasks, or an interruption, give no speed") {
  job j;
  j.work(1, 4, seconds(20));  // three counted
  CHECK(j.log.all().empty());
  j.work(1, 1, seconds(20));
  CHECK(j.speed(1) == doctest::Approx(5));
  job other;
  for (int i = 0; i < 10; ++i) {
    other.work(1, 4);
    other.log.interrupted();
  }
  CHECK(other.log.all().empty());
}

TEST_CASE("a speed does not depend on how the tasks of workers interleave") {
  job j;
  for (int r = 0; r < 4; ++r) {
    j.now += seconds(39);
    j.log.completed(0, 100, j.now);
    j.now += seconds(1);
    j.log.completed(1, 100, j.now);
    if (r > 2) CHECK(j.speed(2) == doctest::Approx(5));
  }
}

TEST_CASE("a speed that changes is followed") {
  job j;
  j.work(1, 200);
  CHECK(j.speed(1) == doctest::Approx(100));
  j.work(1, 200, milliseconds(500));
  CHECK(j.speed(1) == doctest::Approx(200));
}

TEST_CASE("as many sizes are remembered as a report has room for") {
  job j;
  for (std::uint32_t n = 1; n <= 40; ++n) j.work(n, 10);
  CHECK(j.log.all().size() == 32);
  CHECK_FALSE(j.log.all().contains(8));
  CHECK(j.log.all().contains(9));
}

}  // namespace speed_log_test
