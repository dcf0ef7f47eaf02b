// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/health/slow_workers.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace slow_workers_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

// Windows of 30 s, in which each worker makes passes.
struct bench {
  membership workers;
  slow_workers it;
  time_point now{};
  std::uint64_t passes = 0;

  explicit bench(std::uint32_t n) {
    for (std::uint32_t id = 0; id < n; ++id) workers.join(id, 1, {}, now, "a processor");
  }
  template <class Pass>
  std::vector<slow_workers::slow> window(Pass pass, std::uint64_t more = 100) {
    passes += more;
    now += 30s;
    for (auto const& [id, m] : std::map(workers.all()))
      workers.heartbeat(id, 1, {.pass = pass(id), .trained = {0, passes, passes}}, now);
    return it.look(workers, now);
  }
};

}  // namespace

TEST_CASE("a worker that is slow beside its siblings for four windows is told once, with its factor") {
  bench b(4);
  auto const passes = [](std::uint32_t id) { return id == 2 ? 1.8f : 1.0f; };
  for (int i = 0; i < 3; ++i) CHECK(b.window(passes).empty());
  auto const found = b.window(passes);
  REQUIRE(found.size() == 1);
  CHECK(found[0].worker == 2);
  CHECK(found[0].times == doctest::Approx(1.8));
  for (int i = 0; i < 8; ++i) CHECK(b.window(passes).empty());
  CHECK(b.window([](auto) { return 1.0f; }).empty());
  for (int i = 0; i < 3; ++i) CHECK(b.window(passes).empty());
  CHECK(b.window(passes).size() == 1);
  CHECK(b.it.look(b.workers, b.now + 29s).empty());
}

TEST_CASE("another kind of processor is no sibling, nor is one worker enough, nor who makes no passes") {
  bench b(2);
  b.workers.join(2, 1, {}, b.now, "a slow processor");
  b.workers.join(3, 1, {}, b.now, "a slow processor");
  for (int i = 0; i < 9; ++i) CHECK(b.window([](std::uint32_t id) { return id < 2 ? 1.0f : 9.0f; }).empty());
  bench idle(4);
  for (int i = 0; i < 9; ++i)
    CHECK(idle.window([](std::uint32_t id) { return id ? 1.0f : 9.0f; }, 1).empty());
}

TEST_CASE("a thousand quiet runs: noise and pauses blame nobody, and a slow one among them is found") {
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 0.15f);
  std::uniform_real_distribution<float> chance(0, 1);
  std::size_t blamed = 0, found = 0, late = 0;
  for (int run = 0; run < 1000; ++run) {
    bench b(8);
    // Each median is 15 % off, and in one window of fifty a neighbour takes half of the machine.
    auto const quiet = [&](std::uint32_t) {
      return std::exp(noise(random)) * (chance(random) < 0.02f ? 2 : 1);
    };
    for (int i = 0; i < 60; ++i) blamed += b.window(quiet).size();
    bool told = false;
    int windows = 0;
    for (; windows < 60 && !told; ++windows)
      for (auto const& s : b.window([&](std::uint32_t id) { return quiet(id) * (id == 5 ? 2.5f : 1); }))
        s.worker == 5 ? told = true : ++blamed;
    found += told;
    late += windows > 8;
  }
  CHECK(blamed == 0);
  CHECK(found == 1000);
  CHECK(late < 50);
}

}  // namespace slow_workers_test
