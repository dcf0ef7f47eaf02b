// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/evaluation.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace evaluation_test {

using namespace edl::master;
using std::chrono::seconds;

namespace {

time_point const start{};

evaluation service(evaluation::options o = {}) {
  o.tasks.records_per_task = 4;
  o.tasks.minibatch_size = 2;
  return evaluation({{"v", 10}}, o, start);
}

// Leases and completes all that there is; each task's sums are {records}.
std::size_t work(evaluation& e, std::uint32_t worker = 0) {
  std::size_t n = 0;
  while (auto l = e.lease(worker, 1, start)) {
    CHECK(e.complete(l->task.id, {double(l->task.range.records())}, start));
    ++n;
  }
  return n;
}

}  // namespace

TEST_CASE("a version is evaluated over all validation data, and its sums are added up") {
  auto e = service();
  CHECK(e.idle());
  CHECK(!e.lease(0, 1, start));
  CHECK(e.version_reached({50}, start));
  auto const first = e.lease(0, 1, start);
  REQUIRE(first);
  CHECK(first->evaluated.version == 50);
  CHECK(first->evaluated.frozen);
  CHECK((first->task.id & evaluation::lease_bit) != 0);
  CHECK(e.holds(first->task.id, 0, 1));
  CHECK(e.complete(first->task.id, {4}, start));
  CHECK(!e.complete(first->task.id, {4}, start));  // reported twice
  CHECK(!e.take_result());
  CHECK(work(e) == 2);
  auto const result = e.take_result();
  REQUIRE(result);
  CHECK(result->evaluated.version == 50);
  CHECK(result->totals == std::vector<double>{10});
  CHECK(result->records == 10);
  CHECK(!e.take_result());
  CHECK(e.idle());
  CHECK(e.active() == nullptr);
  REQUIRE(e.newest());  // what was done is told after the end, too
  CHECK(e.newest()->done().records_done == 10);
}

TEST_CASE("where the servers rest, their current version is the frozen one") {
  auto e = service();
  for (std::uint64_t version : {50, 100}) e.version_reached({version}, start);
  e.rests(100);
  CHECK(e.lease(0, 1, start)->evaluated.frozen);
  e.recover(0);
  work(e);
  e.take_result();
  CHECK(!e.lease(0, 1, start)->evaluated.frozen);
}

TEST_CASE("a zombie's report does not count for a later version") {
  auto e = service();
  e.version_reached({1}, start);
  auto const zombie = e.lease(1, 1, start);
  e.recover(1);
  work(e);
  CHECK(e.take_result());
  e.version_reached({2}, start);
  CHECK(!e.complete(zombie->task.id, {100}, start));
  auto const before = e.lease(2, 1, start);
  CHECK(before->task.id > zombie->task.id);
  e.roll_back(0);
  e.version_reached({2}, start);
  CHECK(!e.complete(before->task.id, {100}, start));
  work(e);
  CHECK(e.take_result()->totals == std::vector<double>{10});
}

TEST_CASE("a version that is given up has no result, and the next one begins") {
  auto e = service({});
  e.version_reached({7}, start);
  e.version_reached({9}, start);
  CHECK(e.give_up().version == 7);
  work(e);
  CHECK(e.take_result()->evaluated.version == 9);
  CHECK(e.idle());
  CHECK(e.give_up().version == 0);
}

TEST_CASE("not before the start delay, and not more often than the throttle") {
  auto e = service({.start_delay = seconds(100), .throttle = seconds(30)});
  CHECK(!e.version_reached({10}, start + seconds(99)));
  CHECK(e.version_reached({20}, start + seconds(100)));
  CHECK(!e.version_reached({30}, start + seconds(129)));
  CHECK(e.version_reached({31, false}, start + seconds(129)));  // the last one always
  CHECK(e.version_reached({40}, start + seconds(159)));
}

TEST_CASE("a version whose result decides on something is held until it has") {
  auto e = service({.judged = true});
  CHECK(e.version_reached({50}, start));
  CHECK(e.version_reached({60}, start));
  work(e);
  auto const result = e.take_result();
  REQUIRE(result);
  CHECK(!e.completed());
  CHECK(e.wants_frozen(50));
  CHECK(e.to_be_judged(50));
  CHECK(!e.done_up_to(50));
  CHECK(e.done_up_to(49));
  CHECK(!e.idle());
  CHECK(!e.lease(0, 1, start));  // the next waits
  CHECK(!e.judged(60));
  CHECK(e.judged(50));
  CHECK(!e.judged(50));
  CHECK(e.completed() == 50);
  CHECK(e.done_up_to(50));
  CHECK(!e.done_up_to(60));
  work(e);
  CHECK(e.take_result()->evaluated.version == 60);
  // What is rolled back is not judged, and is evaluated again.
  e.roll_back(55);
  CHECK(!e.judged(60));
  CHECK(e.version_reached({60}, start));
}

TEST_CASE("sums are added up in the order of the tasks, in whatever order these are done") {
  std::vector<double> const sums{1e16, 1, -1e16};
  for (auto const& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}}) {
    auto e = service();
    e.version_reached({1}, start);
    std::vector<evaluation_lease> leases;
    while (auto l = e.lease(0, 1, start)) leases.push_back(*l);
    REQUIRE(leases.size() == 3);
    for (int i : order) {
      auto const& task = leases[std::size_t(i)].task;
      CHECK(e.complete(task.id, {sums[task.key.index]}, start));
    }
    CHECK(e.take_result()->totals == std::vector<double>{(1e16 + 1) - 1e16});
  }
}

TEST_CASE(
    "a version that decides on something and that nobody has any more is evaluated when it is told again") {
  for (bool judged : {false, true}) {
    auto e = service({.judged = judged});
    e.version_reached({50}, start);
    CHECK(e.lease(0, 1, start));
    e.forget_unless([](std::uint64_t) { return false; });
    CHECK(e.idle());
    CHECK(e.version_reached({50}, start) == judged);
  }
}

TEST_CASE("a version that is held is evaluated once, also when those before it and behind it are dropped") {
  auto e = service({.judged = true});
  for (std::uint64_t version : {50, 60, 70}) CHECK(e.version_reached({version}, start));
  CHECK(e.lease(0, 1, start)->evaluated.version == 50);
  e.forget_unless([](std::uint64_t version) { return version == 60; });
  CHECK(e.pending() == 1);
  CHECK_FALSE(e.version_reached({60}, start));  // the next world begins with it, and tells it again
  CHECK_FALSE(e.version_reached({50}, start));
  CHECK(e.version_reached({70}, start));
  for (std::uint64_t version : {60, 70}) {
    CHECK(work(e) == 3);
    REQUIRE(e.take_result()->evaluated.version == version);
    // While it is judged it is held as well.
    e.forget_unless([&](std::uint64_t held) { return held == version; });
    CHECK_FALSE(e.version_reached({version}, start));
    CHECK(e.judged(version));
    if (version == 60) CHECK(e.version_reached({70}, start));  // nobody had it any more
  }
  CHECK(e.idle());
}

}  // namespace evaluation_test
