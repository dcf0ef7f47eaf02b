// SPDX-License-Identifier: Apache-2.0
// Jobs with parameter servers, with everything around the master simulated.
#include <doctest/doctest.h>

#include "job/master/simulated_servers.hpp"

namespace simulation_test {

using namespace simulated_servers;

namespace {

void check(simulated& w, std::uint64_t seed) {
  CAPTURE(seed);
  setting const& s = w.set;
  std::uint64_t const minibatches = std::uint64_t(s.epochs) * s.tasks * s.minibatches;
  REQUIRE(w.run(60 * minibatches + 200000));
  CHECK(w.failure == "");
  REQUIRE(w.master.finished());
  CHECK(w.gaps == 0);

  // Every minibatch of every task of every epoch once, on every server.
  auto const& plan = w.master.tasks()->plan();
  CHECK(plan.tasks() == s.tasks);
  std::uint64_t sum = 0, count = 0;
  for (std::uint32_t e = 0; e < std::uint32_t(s.epochs); ++e)
    for (std::uint32_t t = 0; t < plan.tasks(); ++t)
      for (std::uint32_t m = 0; m < plan.minibatches(t); ++m, ++count)
        sum += simulated::effect({{e, t}, m, 0});
  for (auto const& server : w.servers) {
    if (!server.alive) continue;  // killed after the work was done
    CHECK(server.now.count == count);
    CHECK(server.now.sum == sum);
    CHECK(server.now.version == count);
    CHECK(server.now.applied.open().empty());
    for (std::uint32_t e = 0; e < std::uint32_t(s.epochs); ++e)
      CHECK(server.now.applied.closed().at(e).count() == plan.tasks());
  }
  CHECK(w.master.tasks()->done().records_done == plan.records() * std::uint64_t(s.epochs));
  CHECK(w.master.tasks()->done().minibatches_done == count);
  for (auto const& [epoch, c] : w.master.tasks()->done_by_epoch()) CHECK(c.records_done == plan.records());

  for (auto const& r : w.results) {
    CHECK(r.records == simulated::validation_records);
    CHECK(r.totals == simulated::metrics(0, simulated::validation_records, r.evaluated.version));
  }
  if (s.evaluation_steps) {
    REQUIRE(!w.results.empty());
    CHECK(w.results.back().evaluated.version == count);  // the last version is always evaluated
    if (w.rollbacks == 0) CHECK(w.results.size() == (count + s.evaluation_steps - 1) / s.evaluation_steps);
  }
  if (s.checkpoint_steps) CHECK(w.checkpoints.back().first == count);
}

}  // namespace

TEST_CASE("simulation: nothing goes wrong") {
  setting s;
  s.evaluation_steps = 300;
  s.checkpoint_steps = 500;
  simulated w(s, 1);
  check(w, 1);
  CHECK(w.refused == 0);
  CHECK(w.rollbacks == 0);
  CHECK(w.master.tasks()->history().repeated == 0);
}

TEST_CASE("simulation: one worker and one server, killed often") {
  setting s;
  s.workers = 1;
  s.servers = 2;
  s.tasks = 20;
  s.kill = s.partition = 0.05;
  s.evaluation_steps = 7;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    simulated w(s, seed);
    check(w, seed);
  }
}

TEST_CASE("simulation: every fault at once, many seeds") {
  std::uint64_t rollbacks = 0, refused = 0, half = 0, stale = 0, returned = 0, kills = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    setting s;
    s.workers = 5 + std::uint32_t(seed * 7 % 60);
    s.servers = 1 + std::uint32_t(seed % 4);
    s.tasks = 150 + seed;
    s.minibatches = 1 + std::uint32_t(seed % 5);
    s.epochs = 1 + int(seed % 3);
    s.evaluation_steps = seed % 4 == 3 ? 0 : 97;
    s.checkpoint_steps = seed % 5 == 4 ? 0 : 61;
    s.replace_slow = seed % 2 == 0;
    s.kill = 0.01;
    s.partition = s.hang = 0.003;
    s.error = 0.003;
    s.give_back = s.duplicate = 0.02;
    s.server_loss = s.checkpoint_steps ? 0.02 : 0.005;
    simulated w(s, seed);
    check(w, seed);
    rollbacks += w.rollbacks;
    refused += w.refused;
    half += w.half_pushed;
    stale += w.stale;
    returned += w.returned;
    kills += w.kills;
  }
  // The faults did happen.
  MESSAGE("seeds 1 to 40: ", kills, " kills, ", rollbacks, " rollbacks, ", refused, " reports refused, ",
          half, " pushes half done, ", stale, " pushes of an old generation, ", returned,
          " evaluations returned");
  CHECK(rollbacks > 20);
  CHECK(refused > 100);
  CHECK(half > 20);
  CHECK(stale > 20);
  CHECK(returned > 0);
  CHECK(kills > 200);
}

TEST_CASE("simulation: epochs without end, stopped by max_step") {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    CAPTURE(seed);
    setting s;
    s.tasks = 30;
    s.epochs = 0;
    s.max_step = 700 + seed;
    s.evaluation_steps = 50;
    s.checkpoint_steps = 80;
    s.kill = s.partition = s.hang = s.error = s.give_back = s.duplicate = 0.01;
    s.server_loss = 0.02;
    simulated w(s, seed);
    REQUIRE(w.run(1000000));
    CHECK(w.failure == "");
    REQUIRE(w.master.finished());
    // Exactly so many, and the servers agree on which; no more than one task is cut.
    std::uint64_t count = 0;
    for (auto const& [epoch, c] : w.master.tasks()->done_by_epoch()) count += c.minibatches_done;
    CHECK(count == s.max_step);
    for (auto const& server : w.servers) {
      if (!server.alive) continue;
      CHECK(server.now.count == count);
      CHECK(server.now.applied == w.servers[0].now.applied);
      CHECK(server.now.applied.open().size() <= 1);
    }
    CHECK(w.results.back().evaluated.version == count);
  }
}

TEST_CASE("simulation: a thousand workers, a million tasks" * doctest::test_suite("long")) {
  setting s;
  s.workers = 1000;
  s.servers = 2;
  s.tasks = 250000;
  s.minibatches = 1;
  s.epochs = 4;
  s.evaluation_steps = 200000;
  s.checkpoint_steps = 60000;
  s.kill = 0.0005;
  s.partition = s.hang = 0.0002;
  s.error = 0.0005;
  s.give_back = s.duplicate = 0.001;
  s.server_loss = 0.003;
  simulated w(s, 2026);
  check(w, 2026);
  MESSAGE("seed 2026: ", w.handled, " events, ", w.kills, " kills, ", w.rollbacks, " rollbacks, ", w.refused,
          " reports refused, ", w.half_pushed, " pushes half done, ", w.clock, " seconds");
  CHECK(w.kills > 100);
  CHECK(w.rollbacks > 0);
}

}  // namespace simulation_test
