// SPDX-License-Identifier: Apache-2.0
// Jobs that train by all-reduce, with everything around the master simulated.
#include <doctest/doctest.h>

#include "job/master/simulated_worlds.hpp"

namespace worlds_simulation_test {

using namespace simulated_worlds;

namespace {

void check(simulated& s, std::uint64_t seed) {
  INFO("seed ", seed, ", ", s.clock, " seconds");
  setting const& set = s.set;
  bool const ended = s.run(400000);
  INFO(s.state());
  REQUIRE(ended);
  CHECK(s.failure == "");
  REQUIRE(s.master.finished());
  CHECK(s.gaps == 0);

  // The last checkpoint, and every copy that has survived, has counted every minibatch once, by its ledger
  // and by itself.
  std::vector<std::uint8_t> once(std::size_t(set.epochs) * set.tasks * set.minibatches, 1);
  auto const complete = [&](simulated::copy_state const& c) {
    CHECK(c.times == once);
    CHECK(c.applied.open().empty());
    for (std::uint32_t e = 0; e < set.epochs; ++e) CHECK(c.applied.closed().at(e).count() == set.tasks);
  };
  REQUIRE_FALSE(s.checkpoints.empty());
  simulated::copy_state const& last = s.last_checkpoint();
  complete(last);
  for (simulated::worker const* w : s.survivors()) {
    if (!w->copy || w->number != s.master.generation() || w->hangs > s.clock) continue;
    if (w->copy->version < last.version) continue;  // in the middle of the last step
    complete(*w->copy);
    CHECK(w->copy->version == last.version);
  }
  // In any checkpoint, what the ledger says is what has been applied.
  for (auto const& [version, c] : s.checkpoints)
    for (std::uint32_t e = 0; e < set.epochs; ++e)
      for (std::uint32_t t = 0; t < set.tasks; ++t)
        for (std::uint32_t m = 0; m < set.minibatches; ++m) {
          bool const counted = c.applied.closed({e, t}) || m < c.applied.position({e, t});
          if (c.times[s.place({{e, t}, m, 1})] != (counted ? 1 : 0)) FAIL("a checkpoint whose ledger errs");
        }
  auto const& tasks = *s.master.tasks();
  CHECK(tasks.done().records_done == tasks.plan().records() * set.epochs);
  for (auto const& [epoch, c] : tasks.done_by_epoch()) CHECK(c.records_done == tasks.plan().records());
  for (auto const& r : s.results) {
    CHECK(r.records == 31);
    CHECK(r.totals[0] == 31);
  }
  if (set.evaluation_steps) {
    REQUIRE_FALSE(s.results.empty());
    CHECK(s.results.back().evaluated.version == last.version);  // the end is always evaluated
  }
}

}  // namespace

TEST_CASE("simulated worlds: nothing goes wrong") {
  for (std::uint32_t workers : {1u, 2u, 5u}) {
    setting s;
    s.workers = workers;
    s.evaluation_steps = 10;
    s.checkpoint_steps = 7;
    simulated w(s, workers);
    check(w, workers);
    CHECK(w.master.generation() == 1);
    CHECK(w.kills == 0);
    CHECK(w.copies == 0);
    CHECK(w.lost_evaluations == 0);
    CHECK(w.missing_checkpoints == 0);
    CHECK(w.master.tasks()->history().repeated == 0);
    // Steps are common: fewer than minibatches.
    std::uint64_t const minibatches = std::uint64_t(s.epochs) * s.tasks * s.minibatches;
    CHECK(w.last_checkpoint().version <= minibatches);
    CHECK((workers == 1) == (w.last_checkpoint().version == minibatches));
  }
}

TEST_CASE("simulated worlds: a worker whose machine is slow hands over, and the job is done as any other") {
  for (std::uint32_t const slow : {0u, 2u}) {
    setting s;
    s.tasks = 800;
    s.checkpoint_steps = 200;
    s.slow = slow;
    simulated w(s, slow + 1);
    check(w, slow + 1);
    CHECK(w.avoided == 1);
    CHECK(w.kills == 0);
    CHECK(w.master.workers().find(slow) == nullptr);
    CHECK(w.master.workers().find(4) != nullptr);
    CHECK(w.master.workers().all().size() == 4);
    CHECK(w.master.tasks()->history().records_taken_back == 0);
  }
}

TEST_CASE("simulated worlds: steps that end in the middle") {
  std::uint64_t torn = 0, behind = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    setting s;
    s.workers = 2 + std::uint32_t(seed % 5);
    s.checkpoint_steps = 5;
    s.kill_in_step = 0.1;
    s.hang_in_step = seed % 3 == 0 ? 0.03 : 0;
    simulated w(s, seed);
    check(w, seed);
    torn += w.torn;
    behind += w.behind;
  }
  MESSAGE(torn, " steps that some completed, ", behind, " copies that were behind");
  CHECK(torn > 100);
  CHECK(behind > 50);
}

TEST_CASE("simulated worlds: everything at once, many seeds") {
  std::uint64_t kills = 0, hangs = 0, joins = 0, torn = 0, copies = 0, restores = 0, lost = 0, missing = 0,
                worlds = 0, followed = 0;
  for (std::uint64_t seed = 1; seed <= 1200; ++seed) {
    setting s;
    s.workers = 1 + std::uint32_t(seed * 5 % 7);
    s.tasks = 12 + std::uint32_t(seed % 17);
    s.minibatches = 1 + std::uint32_t(seed % 4);
    s.epochs = 1 + std::uint32_t(seed % 3);
    s.evaluation_steps = seed % 4 == 3 ? 0 : 1 + seed % 11;
    s.checkpoint_steps = seed % 5 == 4 ? 0 : 1 + seed % 9;
    if (s.checkpoint_steps == 0) s.workers += 3;  // all lost: all anew
    s.kill_in_step = 0.03;
    s.hang_in_step = 0.01;
    s.kill = 0.02;
    s.kill_all = s.checkpoint_steps ? 0.01 : 0.003;
    s.join = seed % 2 ? 0.03 : 0;
    simulated w(s, seed);
    check(w, seed);
    kills += w.kills, hangs += w.hangs, joins += w.joins, torn += w.torn, copies += w.copies;
    restores += w.restores, lost += w.lost_evaluations, missing += w.missing_checkpoints;
    worlds += w.master.generation(), followed += w.followed;
  }
  MESSAGE("", worlds, " worlds, ", kills, " kills, ", hangs, " hangs, ", joins, " joins, ", torn,
          " steps that some completed, ", copies, " copies, ", restores, " restores, ", lost,
          " evaluations of versions that were nowhere, ", missing, " checkpoints of such");
  // The faults did happen.
  CHECK(kills > 500);
  CHECK(hangs > 50);
  CHECK(joins > 50);
  CHECK(torn > 50);
  CHECK(copies > 200);
  CHECK(restores > 20);
  CHECK(followed > 100);
  // What the master asks for is there.
  CHECK(lost == 0);
  CHECK(missing == 0);
}

TEST_CASE("simulated worlds with lanes: the steps are those of a job to which nothing happens") {
  std::uint64_t kills = 0, torn = 0, behind = 0, restores = 0, worlds = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    setting s;
    s.workers = s.lanes = 1 + std::uint32_t(seed * 5 % 6);
    s.tasks = 12 + std::uint32_t(seed % 17);
    s.minibatches = 1 + std::uint32_t(seed % 4);
    s.epochs = 1 + std::uint32_t(seed % 3);
    s.evaluation_steps = seed % 4 == 3 ? 0 : 1 + seed % 11;
    s.checkpoint_steps = 1 + seed % 9;
    simulated quiet(s, seed);
    check(quiet, seed);
    // One lane is worked off as fast as many.
    std::uint64_t const minibatches = std::uint64_t(s.epochs) * s.tasks * s.minibatches;
    CHECK(quiet.last_checkpoint().version >= (minibatches + s.lanes - 1) / s.lanes);
    CHECK(quiet.last_checkpoint().version <= minibatches / s.lanes + 2 * s.minibatches);
    s.kill_in_step = 0.03;
    s.hang_in_step = 0.01;
    s.kill = 0.02;
    s.kill_all = 0.01;
    s.join = seed % 2 ? 0.03 : 0;
    simulated w(s, seed);
    check(w, seed);
    CHECK(w.last_checkpoint().version == quiet.last_checkpoint().version);
    CHECK(w.last_checkpoint().value == quiet.last_checkpoint().value);
    kills += w.kills, torn += w.torn, behind += w.behind, restores += w.restores;
    worlds += w.master.generation();
  }
  MESSAGE("", worlds, " worlds, ", kills, " kills, ", torn, " steps that some completed, ", behind,
          " copies that were behind, ", restores, " restores");
  CHECK(kills > 100);
  CHECK(torn > 20);
  CHECK(behind > 20);
  CHECK(restores > 5);
}

}  // namespace worlds_simulation_test
