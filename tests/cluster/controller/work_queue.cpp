// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/work_queue.hpp"

#include <doctest/doctest.h>

#include "edl/cluster/controller/rate_limit.hpp"

namespace work_queue_test {

using namespace edl::controller;
using namespace std::chrono_literals;

namespace {
edl::time_point const start{1h};
}

TEST_CASE("a key is looked at once at a time, and again when it was added meanwhile") {
  work_queue q;
  q.add("a", start);
  q.add("a", start);
  CHECK(q.take(start) == "a");
  CHECK_FALSE(q.take(start).has_value());
  q.add("a", start);
  CHECK_FALSE(q.take(start).has_value());
  q.done("a", start, 1ms, false);
  CHECK(q.take(start) == "a");
  q.done("a", start, 1ms, false);
  CHECK_FALSE(q.take(start + 1h).has_value());
  CHECK(q.working() == 0);
}

TEST_CASE("a key that was to be looked at later is looked at when something happens") {
  work_queue q;
  q.add("a", start + 10s);
  CHECK(q.next() == start + 10s);
  CHECK_FALSE(q.take(start + 9s).has_value());
  q.add("a", start + 1s);
  q.add("a", start + 20s);
  CHECK(q.next() == start + 1s);
  CHECK(q.take(start + 1s) == "a");
}

TEST_CASE("a key that fails comes again after pauses that double, whatever is added meanwhile") {
  work_queue q({.first_pause = 100ms, .longest_pause = 300ms});
  q.add("a", start);
  for (auto const pause : {100ms, 200ms, 300ms, 300ms}) {
    REQUIRE(q.take(start + 1h).has_value());
    q.done("a", start, 1ms, true);
    q.add("a", start);
    CHECK(q.next() == start + pause);
  }
  q.add("a", start, true);
  CHECK(q.next() == start);
}

TEST_CASE("slow keys have a few places, and others go by") {
  work_queue q({.first_pause = 1ms, .slow = 100ms, .slow_at_once = 1});
  for (char const* key : {"a", "b"}) {
    q.add(key, start);
    REQUIRE(q.take(start) == key);
  }
  for (char const* key : {"a", "b"}) {
    q.add(key, start);
    q.done(key, start, 1s, false);
  }
  q.add("c", start);
  CHECK(q.take(start) == "a");
  CHECK(q.take(start) == "c");
  CHECK_FALSE(q.take(start).has_value());
  CHECK_FALSE(q.next().has_value());
  q.done("a", start, 1ms, false);
  CHECK(q.take(start) == "b");
}

TEST_CASE("a removed key is forgotten, also while somebody looks at it") {
  work_queue q;
  q.add("a", start);
  q.remove("a");
  CHECK_FALSE(q.take(start).has_value());
  q.add("a", start);
  REQUIRE(q.take(start) == "a");
  q.remove("a");
  q.done("a", start, 1ms, true);
  CHECK_FALSE(q.next().has_value());
}

TEST_CASE("requests are as many a second as allowed, and some more after a rest") {
  rate_limit r(10, 3);
  for (int i = 0; i < 3; ++i) CHECK(r.reserve(start) == 0ms);
  CHECK(r.reserve(start) == 100ms);
  CHECK(r.reserve(start) == 200ms);
  CHECK(r.reserve(start + 10s) == 0ms);
}

}  // namespace work_queue_test
