// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/task_lanes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "edl/core/random.hpp"
#include "edl/job/master/task_queue.hpp"

namespace task_lanes_test {

using namespace edl::master;
using edl::ledger;
using edl::task_key;

namespace {

constexpr std::uint64_t size = 4, per_task = 12;  // three minibatches to a task
task_plan const plan({{"a", 100}, {"b", 50}}, {.records_per_task = per_task, .minibatch_size = size});

std::vector<task_key> all_of(task_lanes lanes, std::uint32_t lane, ledger const& applied = {}) {
  std::vector<task_key> out;
  while (auto const key = lanes.next(lane)) {
    out.push_back(*key);
    lanes.take(plan, applied, lane);
  }
  return out;
}

/// A minibatch of every lane, for as long as any has one.
using steps = std::vector<std::vector<edl::minibatch_key>>;

/// Takes steps from where `applied` is, at most `most`; what they are goes into `applied`, too.
steps walk(task_lanes::options o, ledger& applied,
           std::size_t most = std::numeric_limits<std::size_t>::max()) {
  task_lanes lanes(plan, o);
  lanes.restart(plan, applied);
  ledger const began = applied;
  std::vector<std::optional<edl::minibatch_key>> at(o.lanes);
  steps all;
  while (all.size() < most) {
    std::vector<edl::minibatch_key> step;
    for (std::uint32_t lane = 0; lane < o.lanes; ++lane) {
      auto& m = at[lane];
      if (m && ++m->index == m->count) m.reset();
      if (!m) {
        auto const task = lanes.next(lane);
        if (!task) continue;
        lanes.take(plan, began, lane);
        m = edl::minibatch_key{*task, applied.position(*task), plan.minibatches(task->index)};
      }
      step.push_back(*m);
    }
    if (step.empty()) break;
    for (auto const& m : step) {
      CHECK(applied.check(m) == ledger::sequence_check::next);
      applied.apply({m, 1});
    }
    all.push_back(step);
  }
  return all;
}

}  // namespace

TEST_CASE("lanes hold all tasks of all epochs once, in turn") {
  for (std::uint32_t const lanes : {1u, 3u, 5u, 40u}) {
    task_lanes const dealt(plan, {.lanes = lanes, .epochs = 3, .seed = 4});
    std::vector<task_key> row;
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch)
      for (std::uint32_t const index : epoch_order(plan.tasks(), 4, epoch, true))
        row.push_back({epoch, index});
    REQUIRE(row.size() == 3 * 14);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      std::vector<task_key> expected;
      for (std::size_t i = lane; i < row.size(); i += lanes) expected.push_back(row[i]);
      CHECK(all_of(dealt, lane) == expected);
    }
    CHECK_FALSE(dealt.next(lanes));
    CHECK_FALSE(dealt.over());
  }
}

TEST_CASE("steps go on after any of them as if nothing had happened") {
  task_lanes::options const o{.lanes = 3, .epochs = 2, .seed = 9};
  ledger whole;
  steps const undisturbed = walk(o, whole);
  CHECK(undisturbed.size() >= 2 * 14);
  for (std::size_t stop = 0; stop <= undisturbed.size(); ++stop) {
    ledger applied;
    steps got = walk(o, applied, stop);
    steps const rest = walk(o, applied);
    got.insert(got.end(), rest.begin(), rest.end());
    CHECK(got == undisturbed);
  }
}

TEST_CASE("a limit of minibatches ends the row where it is reached") {
  std::uint64_t const in_epoch = plan.minibatches(0, plan.tasks());
  for (std::uint64_t const most : {std::uint64_t(1), std::uint64_t(7), in_epoch - 1, in_epoch, in_epoch + 5,
                                   2 * in_epoch, 2 * in_epoch + 1}) {
    CAPTURE(most);
    std::vector<task_key> got;
    task_lanes const lanes(plan, {.lanes = 3, .epochs = 2, .seed = 1, .max_minibatches = most});
    for (std::uint32_t lane = 0; lane < 3; ++lane)
      for (auto const& key : all_of(lanes, lane)) got.push_back(key);
    std::uint64_t begun = 0;
    std::size_t expected = 0;
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch)
      for (std::uint32_t const index : epoch_order(plan.tasks(), 1, epoch, true)) {
        if (begun >= most) continue;
        begun += plan.minibatches(index);
        ++expected;
        CHECK(std::ranges::count(got, task_key{epoch, index}) == 1);
      }
    CHECK(got.size() == expected);
  }
}

}  // namespace task_lanes_test
