#include "edl/master/membership.hpp"

#include <doctest/doctest.h>

using namespace edl::master;
using std::chrono::milliseconds;
using std::chrono::seconds;
using enum edl::master::membership::verdict;

namespace {
time_point const start{};
}

TEST_CASE("a process joins once, and never again when it has been given up") {
  membership all;
  CHECK(all.all_gone());
  CHECK(all.join(3, 77, {"a"}, start) == fresh);
  CHECK(all.join(3, 77, {"b"}, start) == repeated);
  CHECK(all.find(3)->addresses == std::vector<std::string>{"b"});
  CHECK(all.known(3, 77));
  CHECK(all.lose(3, 77));
  CHECK(!all.lose(3, 77));
  CHECK(all.all_gone());
  CHECK(all.join(3, 77, {}, start) == given_up);
  CHECK(!all.heartbeat(3, 77, {}, start));
  CHECK(all.join(4, 77, {}, start) == fresh);  // another process that drew the same number
  CHECK(all.join(3, 78, {}, start) == fresh);
  CHECK(!all.find(5));
}

TEST_CASE("a new incarnation replaces the old, for good") {
  membership all;
  all.join(0, 1, {}, start);
  CHECK(all.check(0, 2) == fresh);
  CHECK(all.join(0, 2, {}, start) == fresh);
  CHECK(!all.seen(0, 1, start));
  CHECK(all.join(0, 1, {}, start) == given_up);
  CHECK(all.seen(0, 2, start));
  CHECK(all.all().size() == 1);
}

TEST_CASE("silence is longer than the limit since the last sign of life") {
  membership all(seconds(5));
  all.join(1, 1, {}, start);
  all.join(2, 1, {}, start);
  all.join(3, 1, {}, start);
  CHECK(all.heartbeat(1, 1, {}, start + seconds(3)));
  CHECK(all.seen(2, 1, start + seconds(4)));
  CHECK(all.silent(start + seconds(5)).empty());
  auto const silent = all.silent(start + milliseconds(5001));
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].id == 3);
  CHECK(all.find(3));  // a query
  CHECK(all.silent(start + seconds(60)).size() == 3);
}

TEST_CASE("rates come of the records between heartbeats") {
  membership all;
  all.join(1, 1, {}, start);
  all.heartbeat(1, 1, {.version = 9, .records = 200, .loss = 0.5f}, start + seconds(2));
  CHECK(all.find(1)->rate == doctest::Approx(100));
  CHECK(all.find(1)->last.version == 9);
  all.heartbeat(1, 1, {.records = 400}, start + seconds(3));
  CHECK(all.find(1)->rate == doctest::Approx(0.7 * 100 + 0.3 * 200));
  all.heartbeat(1, 1, {.records = 400}, start + seconds(3));  // at the same instant
  all.heartbeat(1, 1, {.records = 10}, start + seconds(4));   // cannot be
  CHECK(all.find(1)->rate == doctest::Approx(130));
}

TEST_CASE("what nobody could hear is no silence") {
  edl::master::membership m(seconds(5));
  auto const begin = start + seconds(100);
  m.join(1, 7, {}, begin);
  m.excuse(seconds(60), begin + seconds(61));
  CHECK(m.silent(begin + seconds(61)).empty());
  CHECK(m.silent(begin + seconds(66)).size() == 1);
  m.excuse(seconds(60), begin + seconds(62));  // never into the future
  CHECK(m.silent(begin + seconds(68)).size() == 1);
}
