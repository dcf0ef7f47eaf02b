// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/team.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace team_test {

TEST_CASE("each part is done once, on its own thread or, where that comes too late, on the caller's") {
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
    std::set<std::thread::id> others(who.begin() + 1, who.end());
    others.erase(who[0]);
    CHECK(others.size() ==
          std::size_t(std::count_if(who.begin(), who.end(), [&](auto id) { return id != who[0]; })));
  }
}

TEST_CASE("the child of a fork has threads of its own, and ends well with what it inherits") {
  edl::thread_team used(3), unused(3);
  used.run(3, [](int) {});
  ::pid_t const child = ::fork();
  if (child == 0) {
    std::atomic<int> parts{0};
    {
      edl::thread_team const never = std::move(unused);
      edl::thread_team again = std::move(used);
      for (int round = 0; round < 100; ++round) again.run(3, [&](int) { ++parts; });
    }
    ::_exit(parts == 300 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  int parts[3] = {};
  used.run(3, [&](int part) { ++parts[part]; });
  CHECK(parts[0] + parts[1] + parts[2] == 3);
}

TEST_CASE("a caller that has nothing to do itself takes parts, each of which is done once all the same") {
  edl::thread_team team(4);
  std::vector<int> times(4);
  for (int round = 0; round < 5000; ++round)
    team.run(4, [&](int part) {
      if (part > 0) ++times[std::size_t(part)];
    });
  CHECK(times == std::vector{0, 5000, 5000, 5000});
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
