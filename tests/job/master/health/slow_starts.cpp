// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/health/slow_starts.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace slow_starts_test {

using namespace edl::master;

namespace {

struct bench {
  membership workers;
  slow_starts it;

  std::vector<slow_starts::slow> join(std::uint32_t id, start_speeds const& speeds,
                                      std::string const& kind = "a processor") {
    workers.join(id, 1, {}, time_point{}, kind);
    it.began(id, speeds);
    return it.look(workers);
  }
};

}  // namespace

TEST_CASE("a worker whose disk or network is much slower than its siblings' is told once") {
  for (bool const disk : {true, false}) {
    CAPTURE(disk);
    auto const speeds = [&](double other) {
      return disk ? start_speeds{other, 1e9} : start_speeds{1e9, other};
    };
    bench b;
    CHECK(b.join(0, speeds(10e6)).empty());
    CHECK(b.join(1, speeds(100e6)).empty());  // one sibling is not enough
    auto const found = b.join(2, speeds(120e6));
    REQUIRE(found.size() == 1);
    CHECK(found[0].worker == 0);
    CHECK(found[0].why ==
          (disk ? "is slow: when it started it wrote to its disk with 10 MB/s, its siblings 100 MB/s"
                : "is slow: when it started it sent to the master with 10 MB/s, its siblings 100 MB/s"));
    CHECK(b.join(3, speeds(110e6)).empty());
    CHECK(b.join(4, speeds(20e6)).empty());
    CHECK(b.join(5, speeds(9e6)).size() == 1);
    b.workers.lose(5, 1);
    CHECK(b.join(6, speeds(9e6)).size() == 1);
  }
}

TEST_CASE("who has measured nothing, or has another kind of processor, is no sibling") {
  bench b;
  for (std::uint32_t id = 0; id < 4; ++id) CHECK(b.join(id, {}).empty());
  CHECK(b.join(4, {1e6, 1e6}).empty());
  CHECK(b.join(9, {NAN, INFINITY}).empty());
  CHECK(b.join(10, {INFINITY, NAN}).empty());
  CHECK(b.join(11, {-1e9, NAN}).empty());
  CHECK(b.join(5, {1e9, 1e9}, "another processor").empty());
  CHECK(b.join(6, {1e9, 1e9}, "another processor").empty());
  CHECK(b.join(7, {1e9, 1e9}).empty());
  CHECK(b.join(8, {1e9, 1e9}).size() == 1);
}

TEST_CASE("a thousand quiet jobs: neighbours and crowds blame nobody, and a rotten machine is found") {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.25);
  std::uniform_real_distribution<double> chance(0, 1);
  std::size_t blamed = 0, found = 0;
  for (int run = 0; run < 1000; ++run) {
    // The best of three: each is off, and in one of ten a neighbour leaves a tenth to a half. Those that
    // begin together share the way to the master.
    auto const measured = [&](double crowd) {
      double best = 0;
      for (int i = 0; i < 3; ++i) {
        double const neighbour = chance(random) < 0.1 ? 0.1 + 0.4 * chance(random) : 1;
        best = std::max(best, std::exp(noise(random)) * neighbour);
      }
      return 100e6 * best / crowd;
    };
    bench b;
    std::uint32_t id = 0;
    for (int i = 0; i < 4; ++i) blamed += b.join(id++, {measured(1), measured(1)}).size();
    int const crowd = 1 + int(3 * chance(random));
    for (int i = 0; i < crowd; ++i) blamed += b.join(id++, {measured(1), measured(crowd)}).size();
    for (auto const& s : b.join(id, {measured(1) / 20, measured(1)})) s.worker == id ? ++found : ++blamed;
  }
  CHECK(blamed == 0);
  CHECK(found > 990);
}

}  // namespace slow_starts_test
