// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/membership.hpp"

#include <doctest/doctest.h>

namespace membership_test {

using namespace edl::master;
using std::chrono::milliseconds;
using std::chrono::seconds;
using enum edl::master::membership::standing;

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

TEST_CASE("a member that is at one pass for too long may hang; not in its first, and not while it waits") {
  membership all(seconds(5), seconds(60));
  auto const beat = [&](std::uint32_t id, std::uint64_t position, int at) {
    CHECK(all.heartbeat(id, 1, {.position = position}, start + seconds(at)));
  };
  auto const hanging = [&](int at) {
    std::vector<std::uint32_t> ids;
    for (auto const& m : all.hanging(start + seconds(at))) ids.push_back(m.id);
    return ids;
  };
  using ids = std::vector<std::uint32_t>;
  for (std::uint32_t const id : {1u, 2u, 3u}) all.join(id, 1, {}, start);
  beat(1, 1, 1);  // at its first
  beat(2, 7, 1);  // at its fourth
  beat(3, 8, 1);  // waits for others
  for (int at = 2; at <= 69; ++at) beat(1, 1, at), beat(2, 7, at), beat(3, 8, at);
  CHECK(hanging(61) == ids{});
  CHECK(hanging(62) == ids{2});
  CHECK(hanging(1000) == ids{2});
  // It gets on, and has shown how long a pass may take.
  beat(2, 9, 70);
  CHECK(hanging(70 + 20 * 69) == ids{});
  CHECK(hanging(70 + 20 * 69 + 1) == ids{2});
  all.excuse(seconds(100), start + seconds(200));
  CHECK(hanging(170 + 20 * 69) == ids{});
  CHECK(hanging(170 + 20 * 69 + 1) == ids{2});
}

TEST_CASE("what members have trained is added up, once, whatever tells it and in whatever order") {
  edl::master::time_point const start{};
  edl::master::membership m;
  m.join(0, 7, {}, start);
  auto const beat = [&](edl::trained const& all, int second) {
    return m.heartbeat(0, 7, {.records = all.records, .trained = all}, start + std::chrono::seconds(second));
  };
  CHECK(beat({}, 1));
  m.announced(0, {6, 3, 192});
  CHECK(beat({4, 2, 128}, 2));  // was on its way for longer
  CHECK(m.trained().minibatches == 3);
  CHECK(m.trained().loss == 6);
  CHECK_FALSE(
      m.heartbeat(0, 6, {.trained = {90, 10, 640}}, start + std::chrono::seconds(3)));  // another process
  m.announced(0, {8, 4, 256});
  m.announced(0, {10, 5, 320});
  CHECK(m.lose(0, 7));
  CHECK(m.trained().records == 320);
  CHECK(m.trained().loss == 10);
  // It has trained before this master has heard of it.
  m.join(1, 8, {}, start);
  m.heartbeat(1, 8, {.records = 640, .trained = {90, 10, 640}}, start + std::chrono::seconds(3));
  CHECK(m.trained().minibatches == 5);
  m.announced(1, {92, 11, 704});
  CHECK(m.trained().minibatches == 6);
  CHECK(m.trained().loss == 12);
  m.announced(1, {94, 12, 768, 50, 7});
  m.announced(1, {96, 13, 832, 40, 8});  // fewer words than before: it is not believed
  m.announced(1, {96, 13, 832, 60, 8});
  CHECK(m.trained().words == 60);
  CHECK(m.trained().unknown == 8);
}

}  // namespace membership_test
