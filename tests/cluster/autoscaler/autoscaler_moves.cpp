// SPDX-License-Identifier: Apache-2.0
// Workers that the autoscaler puts together.
#include <doctest/doctest.h>

#include "cluster/autoscaler/converged_plans.hpp"
#include "edl/cluster/autoscaler/autoscaler.hpp"

namespace autoscaler_moves_test {

using namespace converged_plans;

TEST_CASE("workers are put together, unless that is not wanted") {
  for (bool move : {true, false}) {
    cluster_view v =
        of({machine("m", 4), machine("n", 4)}, {one("a", 2, 4, cores(1)), one("b", 2, 2, cores(1))});
    for (job_view& j : v.jobs) {
      j.admitted = true;
      j.workers = 2;
      for (char const* on : {"m", "n"})
        v.pods.push_back({.name = j.uid + on, .job = j.uid, .node = on, .shape = cores(1)});
    }
    converge(v, {.max_load = 1, .move = move});
    std::map<std::string, std::set<std::string>> on;
    for (pod const& w : v.pods) on[w.job].insert(w.node);
    CHECK(on["a"].size() == (move ? 1 : 2));
    CHECK(on["b"].size() == (move ? 1 : 2));
    CHECK(workers_of(v, "a") == 4);
  }
}

namespace {

/// A job of two workers on two nodes, one of which has room for both.
cluster_view apart() {
  cluster_view v = of({machine("m", 2), machine("n", 1)}, {one("a", 2, 2, cores(1))});
  v.jobs[0].admitted = true;
  v.jobs[0].workers = 2;
  v.pods = {{.name = "a1", .job = "a", .node = "m", .shape = cores(1)},
            {.name = "a2", .job = "a", .node = "n", .shape = cores(1)}};
  return v;
}

}  // namespace

TEST_CASE("a worker is moved by starting the new one first, and as one worker until the old one has left") {
  cluster_view v = apart();
  plan_options const o{.max_load = 1, .move = true};
  CHECK(changes(v, make_plan(v, {.max_load = 1})) == "");  // who does not ask for moves gets none
  plan const p = make_plan(v, o);
  REQUIRE(plan_of(p, "a").moves.size() == 1);
  CHECK(plan_of(p, "a").moves[0].pod == "a2");
  CHECK(plan_of(p, "a").moves[0].node == "m");
  CHECK(plan_of(p, "a").workers == 2);
  CHECK(plan_of(p, "a").leaving.empty());
  CHECK(plan_of(p, "a").nodes.empty());
  v.pods.push_back({.name = "a3",
                    .job = "a",
                    .nominated = "m",
                    .nominated_at = v.now,
                    .replaces = "a2",
                    .shape = cores(1)});
  v.jobs[0].last_resized = v.now;
  CHECK(changes(v, make_plan(v, o)) == "");
  v.jobs.push_back(one("b", 1, 1, cores(1)));  // the room is kept for the new one until it is there
  CHECK_FALSE(plan_of(make_plan(v, o), "b").admitted);
  v.pods[2].node = "m";
  CHECK_FALSE(plan_of(make_plan(v, o), "b").admitted);
  CHECK(plan_of(make_plan(v, o), "a").leaving.empty());
  v.pods[1].leaving = true;
  CHECK(plan_of(make_plan(v, o), "b").admitted);
  CHECK(plan_of(make_plan(v, o), "a").workers == 2);
  v.pods.erase(v.pods.begin() + 1);
  CHECK(plan_of(make_plan(v, o), "a").leaving.empty());
  CHECK(plan_of(make_plan(v, o), "a").moves.empty());
}

TEST_CASE("a move that is under way ends with its job, with its room, or with its worker") {
  cluster_view v = apart();
  plan_options const o{.max_load = 1, .move = true};
  v.pods.push_back({.name = "a3", .job = "a", .nominated = "m", .replaces = "a2", .shape = cores(1)});
  SUBCASE("the job is suspended") {
    v.jobs[0].suspended = true;
    for (char const* on : {"", "m"}) {
      v.pods[2].node = on;
      CHECK(plan_of(make_plan(v, o), "a").leaving.size() == 3);
    }
  }
  SUBCASE("its room was taken") {
    v.pods.push_back({.name = "web", .node = "m", .shape = cores(1)});
    CHECK(plan_of(make_plan(v, o), "a").leaving == std::vector<std::string>{"a3"});
    CHECK(plan_of(make_plan(v, o), "a").workers == 2);
  }
  SUBCASE("the old worker is lost") {
    v.pods.erase(v.pods.begin() + 1);
    CHECK(changes(v, make_plan(v, o)) == "");
  }
}

TEST_CASE("nobody is moved where the new worker has no room beside the old one") {
  cluster_view v = apart();
  v.nodes[0] = machine("m", 1);
  CHECK(changes(v, make_plan(v, {.max_load = 1, .move = true})) == "");
  v.nodes[0] = machine("m", 2);
  CHECK(changes(v, make_plan(v, {.max_load = 0.9, .move = true})) == "");  // nor in the headroom
}

}  // namespace autoscaler_moves_test
