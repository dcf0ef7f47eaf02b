// SPDX-License-Identifier: Apache-2.0
#include "edl/device/cpu/team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace team_test {

TEST_CASE("each part is done once, each on its own thread, the first on the caller's") {
  for (int size : {1, 2, 5}) {
    edl::thread_team team(size);
    REQUIRE(team.size() == size);
    auto const n = std::size_t(size);
    std::vector<std::thread::id> who(n);
    std::vector<int> times(n);
    for (int round = 0; round < 2000; ++round)
      team.run(size, [&](int part) {
        who[std::size_t(part)] = std::this_thread::get_id();
        ++times[std::size_t(part)];
      });
    for (int t : times) CHECK(t == 2000);
    CHECK(who[0] == std::this_thread::get_id());
    CHECK(std::set<std::thread::id>(who.begin(), who.end()).size() == n);
  }
}

TEST_CASE("fewer parts than threads, and a team that moves") {
  edl::thread_team team(3);
  std::atomic<int> done{0};
  team.run(2, [&](int part) { done += part + 1; });
  CHECK(done == 3);
  edl::thread_team other = std::move(team);
  CHECK(other.size() == 3);
  CHECK(team.size() == 1);
  other.run(3, [&](int part) { done += part + 1; });
  CHECK(done == 9);
  team = std::move(other);
  CHECK(team.size() == 3);
  team.run(0, [&](int) { ++done; });
  CHECK(done == 10);
}

TEST_CASE("sleeping threads wake up again") {
  edl::thread_team team(2);
  std::atomic<int> done{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    team.run(2, [&](int) { ++done; });
  }
  CHECK(done == 10);
}

}  // namespace team_test
