// SPDX-License-Identifier: Apache-2.0
// Sessions whose worker has several lanes of tasks.
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "edl/core/clock.hpp"
#include "job/worker/scripted_session.hpp"

namespace session_lanes_test {

using namespace scripted_session;

namespace {

/// A link to a world in which this worker has lanes 4 and 5; a step has one minibatch of each.
struct two_lanes : scripted_parameters {
  std::vector<edl::minibatch_key> waiting;
  std::vector<std::vector<edl::minibatch_key>> steps;
  std::vector<std::pair<std::uint32_t, bool>> turns;
  std::uint64_t generation = 3;
  std::size_t world_ends_after = 1000;
  std::size_t rests_after = 0;
  int idled = 0;

  edl::worker::lane_range lanes() const override { return {4, 2, generation}; }
  void turn(std::uint32_t lane, bool last) override { turns.push_back({lane, last}); }
  std::size_t pending() const override { return waiting.size(); }
  std::optional<std::uint64_t> rests_at() const override {
    bool const rests = rests_after > 0 && steps.size() == rests_after && waiting.empty();
    return rests ? std::optional<std::uint64_t>(rests_after) : std::nullopt;
  }
  edl::worker::pushed push(edl::contribution const& m, std::uint64_t v, edl::view<float> g,
                           edl::view<float> change,
                           std::span<edl::sparse::row_gradients const> rows) override {
    waiting.push_back(m.key);
    if (turns.back().second) step();
    return scripted_parameters::push(m, v, g, change, rows);
  }
  void idle(std::chrono::milliseconds timeout) override {
    ++idled;
    if (!waiting.empty()) {
      CHECK(timeout.count() == 0);
      step();
    }
  }
  void step() {
    if (steps.size() == world_ends_after) {
      world_ends_after = 1000;
      waiting.clear();
      ++generation;
      throw edl::worker::rolled_back("the next world");
    }
    steps.push_back(std::exchange(waiting, {}));
  }
};

/// Each lane's own tasks.
struct dealing_master : edl::worker::master_link {
  std::map<std::uint32_t, std::deque<assignment>> work;
  std::vector<outcome> outcomes;
  bool over = false;
  int rests = 0;                    // so often it says that nobody makes a step for now
  std::function<void()> evaluated;  // until an outcome is reported, nobody makes a step

  assignment next(std::uint32_t lane) override {
    assignment a;
    a.kind = over ? task_kind::finished : task_kind::wait;
    if (rests > 0 && !outcomes.empty() && outcomes.back().returned) {
      a.rests = true;
      --rests;
      return a;
    }
    auto& mine = work[lane];
    a.rests = evaluated != nullptr;
    if (mine.empty()) return a;
    a = mine.front();
    mine.pop_front();
    return a;
  }
  bool report(outcome const& o) override {
    outcomes.push_back(o);
    if (auto const then = std::exchange(evaluated, nullptr)) then();
    return true;
  }
};

std::vector<edl::minibatch_key> minibatches(
    std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> task_and_index) {
  std::vector<edl::minibatch_key> all;
  for (auto const& [task, index] : task_and_index) all.push_back({{0, task}, index, 2});
  return all;
}

}  // namespace

TEST_CASE("lanes are worked off together, one minibatch of each in a step") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  auto evaluation = b.task(60, 68, task_kind::evaluation);
  master.work[4] = {b.task(0, 8), b.task(8, 16)};
  master.work[5] = {evaluation, b.task(20, 28)};
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  int asked = 0;
  s.stop_when([&] {
    master.over = parameters.idled > 0 && parameters.steps.size() >= 4 && ++asked > 3;
    return false;
  });
  CHECK(s.run());
  // Lane 5 has an evaluation before its task, and nothing when lane 4 still has.
  REQUIRE(parameters.steps.size() == 4);
  CHECK(parameters.steps[0] == minibatches({{0, 0}, {20, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}, {20, 1}}));
  CHECK(parameters.steps[2] == minibatches({{8, 0}}));
  CHECK(parameters.steps[3] == minibatches({{8, 1}}));
  CHECK(parameters.turns == std::vector<std::pair<std::uint32_t, bool>>{
                                {0, false}, {1, true}, {0, false}, {1, true}, {0, true}, {0, true}});
  REQUIRE(master.outcomes.size() == 4);
  CHECK(master.outcomes[0].metrics == std::vector<double>{8});
  for (auto const& o : master.outcomes) CHECK(o.error.empty());
}

TEST_CASE("a lane that turns out to have nothing holds up no step, and the next world deals anew") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  master.work[4] = {b.task(0, 8)};
  master.work[5] = {b.task(60, 64, task_kind::evaluation)};
  parameters.world_ends_after = 1;
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  s.stop_when([&] {
    if (parameters.generation == 4 && parameters.steps.size() == 1) {
      auto again = b.task(0, 8);
      again.resumed = true;
      parameters.held = 1;
      master.work[4] = {again};
      ++parameters.generation;  // once
    }
    master.over = parameters.steps.size() >= 2;
    return false;
  });
  CHECK(s.run());
  REQUIRE(parameters.steps.size() == 2);
  CHECK(parameters.steps[0] == minibatches({{0, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}}));
  CHECK(parameters.turns.front() == std::pair<std::uint32_t, bool>{0, false});  // it seemed to have something
  CHECK(parameters.idled > 0);
  CHECK(master.outcomes.back().lease == 100);
}

TEST_CASE("after an evaluation that the second lane had, a step begins with the first lane") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  master.work[5] = {b.task(60, 68, task_kind::evaluation)};
  master.evaluated = [&] {
    master.work[4] = {b.task(0, 8)};
    master.work[5] = {b.task(20, 28)};
    // Lane 4 asks again after 5 ms: with lane 5, and not after it.
    for (auto const until = edl::clock::now() + std::chrono::milliseconds(6); edl::clock::now() < until;) {
    }
  };
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  s.stop_when([&] {
    master.over = parameters.steps.size() >= 2;
    return false;
  });
  CHECK(s.run());
  REQUIRE(parameters.steps.size() >= 2);
  CHECK(parameters.steps[0] == minibatches({{0, 0}, {20, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}, {20, 1}}));
}

TEST_CASE("where a version is to be evaluated, what was leased goes back, and no step is made before") {
  bench b;
  two_lanes parameters;
  dealing_master master;
  // A step in the middle of both lanes' tasks.
  master.work[4] = {b.task(0, 8), b.task(8, 16)};
  master.work[5] = {b.task(20, 28)};
  parameters.rests_after = 1;
  master.rests = 5;  // to lane 4 last: lane 5 has its task again while lane 4 has none
  edl::worker::session s(b.options, b.model, b.rule, {&b.from, &b.from, &b.from}, master, parameters,
                         edl::logger(edl::severity::critical));
  std::vector<outcome> returned;
  s.stop_when([&] {
    if (returned.empty() && master.outcomes.size() == 3) {
      returned = master.outcomes;
      for (outcome const& o : returned) {
        auto again = b.task(o.lease - 100, o.lease - 100 + 8);
        again.applied = o.applied;
        master.work[o.lease == 120 ? 5 : 4].push_front(again);
      }
    }
    master.over = parameters.steps.size() >= 4;
    return false;
  });
  CHECK(s.run());
  REQUIRE(returned.size() == 3);
  for (outcome const& o : returned) CHECK(o.returned);
  CHECK(returned[0].lease == 108);
  CHECK(returned[1].lease == 100);
  CHECK(returned[1].applied == 1);
  CHECK(returned[2].lease == 120);
  CHECK(returned[2].applied == 1);
  CHECK(master.rests == 0);
  REQUIRE(parameters.steps.size() == 4);
  CHECK(parameters.steps[0] == minibatches({{0, 0}, {20, 0}}));
  CHECK(parameters.steps[1] == minibatches({{0, 1}, {20, 1}}));
  CHECK(parameters.steps[2] == minibatches({{8, 0}}));
  CHECK(parameters.idled == 0);
}

}  // namespace session_lanes_test
