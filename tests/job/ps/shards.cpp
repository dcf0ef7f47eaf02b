// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/shards.hpp"

#include <doctest/doctest.h>

#include "job/ps/processes.hpp"

namespace shards_test {

using namespace server_processes;

namespace {

bool all_stay(std::uint32_t) { return true; }

}  // namespace

TEST_CASE("nothing is served while a generation is taken, and what stays may be copied then") {
  asio::io_context on;
  shards s(on.get_executor(), "ps-x");
  CHECK(code_of([&] { s.check(1); }) == status::not_ready);
  s.hear(1, all_stay);
  s.place(0).state = make_store(0);
  s.place(0).begin(1);
  s.place(1).state = make_store(1);
  CHECK(code_of([&] { s.of(1, 0); }) == status::not_ready);
  CHECK(&s.source(1, 0) == s.find(0)->state.get());
  s.serve();
  CHECK(s.generation() == 1);
  CHECK(&s.of(1, 0) == s.find(0));
  CHECK(s.held() == std::vector<std::uint32_t>{0});  // the other is of an older generation
  CHECK(code_of([&] { s.of(1, 2); }) == status::invalid);
  CHECK(code_of([&] { s.of(1, 0, false); }) == status::invalid);
  CHECK(code_of([&] { s.of(2, 0); }) == status::stale_generation);
  s.hear(2, [](std::uint32_t range) { return range == 0; });
  CHECK_FALSE(s.find(1));
  CHECK(code_of([&] { s.source(2, 1); }) == status::not_ready);
  CHECK(code_of([&] { s.check(2); }) == status::not_ready);
  CHECK(code_of([&] { s.hear(1, all_stay); }) == status::stale_generation);
  s.withdraw();
  CHECK(s.held().empty());
  CHECK(s.version() == 0);
}

TEST_CASE("a generation begins with what the one before had applied, once") {
  shard s{.applied = 7, .safe = 5, .cut_off = true};
  s.since = 3;
  s.begin(4);
  CHECK(s.since_before == 3);
  CHECK(s.applied_before == 7);
  CHECK(s.applied == 0);
  CHECK(s.safe == 0);
  CHECK_FALSE(s.cut_off);
  s.applied = 2;
  s.begin(4);
  CHECK(s.since_before == 3);
  CHECK(s.applied == 2);
}

}  // namespace shards_test
