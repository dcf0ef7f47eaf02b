// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server_generations.hpp"

#include <doctest/doctest.h>

namespace server_generations_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

using set = std::set<std::uint32_t>;
using past = server_generations::past_state;

time_point const start{1h};

server_generations made(std::uint32_t servers, unsigned copies = 2, std::uint64_t left_behind = 0) {
  return server_generations({.wanted = servers, .ranges = servers, .copies = copies, .gathering = 10s},
                            left_behind, start);
}

/// Two servers with copies of both ranges, configured once.
server_generations configured_servers() {
  server_generations g = made(2);
  g.configure(1, {0, 1}, "");
  CHECK_FALSE(g.configured(0, {}, {0, 1}));
  CHECK(g.configured(1, {}, {0, 1}));
  return g;
}

}  // namespace

TEST_CASE("the first generation takes what the job begins with") {
  server_generations g = made(2);
  CHECK(g.look_at_past({}, {}, start) == past::none);
  configure_servers const c = g.configure(1, {0, 1}, "checkpoint");
  CHECK(c.generation == 1);
  CHECK_FALSE(c.keep);
  CHECK(c.restore == "checkpoint");
  CHECK(c.places == std::vector<range_place>{{0, 1}, {1, 0}});
  CHECK(g.ever_configured());
  CHECK_FALSE(g.take_kept());
}

TEST_CASE("what is kept is what all have applied, at the oldest of their versions") {
  server_generations g = configured_servers();
  g.keep(true);
  g.configure(2, {0, 1}, "");
  edl::ledger ahead, behind;
  ahead.set_open({0, 3}, 8);
  behind.set_open({0, 3}, 6);
  g.configured(0, copy_position{.version = 12, .applied = ahead}, {0, 1});
  CHECK(g.configured(1, copy_position{.version = 11, .applied = behind}, {0, 1}));
  auto const kept = g.take_kept();
  REQUIRE(kept);
  CHECK(kept->version == 11);
  CHECK(kept->applied.open() == behind.open());
  CHECK_FALSE(g.take_kept());
}

TEST_CASE("a state newer than the master knows of replaces the past that it knew") {
  server_generations g = made(2, 1, 7);
  g.joined(0, {7, 0}, {0}, true);
  CHECK(g.joined(1, {9, 0}, {1}, true));
  CHECK_FALSE(g.whole({0, 1}));  // the older state does not count
  CHECK_FALSE(g.joined(0, {9, 0}, {0}, true));
  CHECK(g.look_at_past({0, 1}, {}, start) == past::intact);
}

TEST_CASE("a state that is behind the newest checkpoint is as good as gone, once all are there") {
  using edl::in_epoch;
  edl::position const checkpoint{in_epoch(1, 6), 28500};
  auto const look = [&](edl::position held) {
    server_generations g = made(2, 2);
    CHECK(g.joined(0, held, {0, 1}, true));
    CHECK(g.look_at_past({0}, checkpoint, start) == past::awaited);
    g.joined(1, {}, {}, true);
    return g.look_at_past({0, 1}, checkpoint, start);
  };
  CHECK(look({in_epoch(1, 5), 11486}) == past::gone);
  CHECK(look({in_epoch(1, 5), 28500}) == past::intact);  // of before the checkpoint was written
  CHECK(look({in_epoch(1, 6), 28499}) == past::gone);
  CHECK(look({in_epoch(1, 7), 28499}) == past::intact);  // it has gone back since
  CHECK(look({in_epoch(2, 1), 11}) == past::intact);
  CHECK(look({9, 99999}) == past::gone);
}

TEST_CASE("once a generation is configured nobody brings another past") {
  server_generations g = configured_servers();
  CHECK_FALSE(g.joined(2, {99, 0}, {0, 1}, true));
}

TEST_CASE("generations leap farther each time that a server is ahead, until all have one") {
  server_generations g = made(1);
  CHECK(g.leap() == 1);
  CHECK(g.leap() == 2);
  CHECK(g.leap() == 4);
  for (int i = 0; i < 40; ++i) g.leap();
  CHECK(g.leap() == 1u << 20);
  g.configure(5, {0}, "");
  g.configured(0, {}, {0});
  CHECK(g.leap() == 1);
}

TEST_CASE("servers that are not wanted any more are sources, and serve nothing") {
  server_generations g = configured_servers();
  g.want(1);
  g.keep(true);
  configure_servers const c = g.configure(2, {0, 1}, "");
  CHECK(c.sources == std::vector<std::uint32_t>{0, 1});
  for (range_place const& p : c.places) CHECK(p.primary == 0);
}

}  // namespace server_generations_test
