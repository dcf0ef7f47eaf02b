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

TEST_CASE("of epochs that are done nothing is left, however many they are") {
  ledger applied;
  for (std::uint32_t e = 0; e < 100'000; ++e) applied.set_closed(e, 0, plan.tasks());
  applied.set_closed(100'001, 2, 5);
  task_lanes lanes(plan, {.lanes = 4, .epochs = 100'002, .shuffle = false});
  lanes.restart(plan, applied);
  std::vector<task_key> left;
  for (std::uint32_t lane = 0; lane < 4; ++lane)
    for (auto const& key : all_of(lanes, lane, applied)) left.push_back(key);
  std::ranges::sort(left);
  CHECK(left.size() == 14 + 14 - 3);
  CHECK(left.front() == task_key{100'000, 0});
  CHECK(std::ranges::none_of(left,
                             [](task_key k) { return k.epoch == 100'001 && k.index >= 2 && k.index < 5; }));
  applied.set_closed(100'000, 0, plan.tasks());
  applied.set_closed(100'001, 0, plan.tasks());
  lanes.restart(plan, applied);
  CHECK(lanes.over());
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

TEST_CASE("a queue with lanes leases to each lane its own, and ends when all are empty") {
  task_queue q(
      {{"a", 100}, {"b", 50}},
      {.records_per_task = per_task, .minibatch_size = size, .num_epochs = 2, .seed = 4, .lanes = 3});
  task_lanes const dealt(q.plan(), {.lanes = 3, .epochs = 2, .seed = 4});
  std::vector<std::vector<task_key>> got(3);
  edl::random_stream const random(1, 2);
  time_point const now{};
  // Workers of any speed.
  for (std::uint64_t i = 0; !q.finished() && i < 10'000; ++i) {
    auto const lane = std::uint32_t(random.below(3, i));
    auto const l = q.lease(10 + lane, 1, now, lane);
    if (!l) continue;
    got[lane].push_back(l->key);
    if (random.below(4, 100'000 + i) == 0) {
      // Handed back: it is the lane's next again, and no other's.
      CHECK(q.give_back(l->id, 0));
      CHECK(q.recovered_waiting(lane));
      CHECK_FALSE(q.recovered_waiting((lane + 1) % 3));
      auto const again = q.lease(20 + lane, 1, now, lane);
      REQUIRE(again);
      CHECK(again->key == l->key);
      CHECK(again->resumed);
      CHECK(q.complete(again->id, now));
    } else {
      CHECK(q.complete(l->id, now));
    }
  }
  CHECK(q.finished());
  CHECK(q.done().tasks_done == 2 * 14);
  CHECK(q.remaining() == 0);
  CHECK(q.epochs_opened() == 2);
  for (std::uint32_t lane = 0; lane < 3; ++lane) CHECK(got[lane] == all_of(dealt, lane));
}

TEST_CASE("a task that fails in a lane is tried again when the epochs that are open have no other for it") {
  task_queue q({{"a", 36}}, {.records_per_task = per_task,
                             .minibatch_size = size,
                             .num_epochs = 0,
                             .shuffle = false,
                             .max_retries = 3,
                             .lanes = 1});
  time_point const now{};
  auto const first = q.lease(0, 1, now);
  CHECK(q.fail(first->id, 0, "torn") == task_fate::requeued);
  for (std::uint32_t index : {1u, 2u}) {
    auto const l = q.lease(0, 1, now);
    CHECK(l->key == task_key{0, index});
    CHECK(q.complete(l->id, now));
  }
  CHECK(q.lease(0, 1, now)->key == task_key{0, 0});
  CHECK(q.lease(0, 1, now)->key == task_key{1, 0});
}

}  // namespace task_lanes_test
