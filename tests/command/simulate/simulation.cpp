// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"
#include "simulate/report.hpp"
#include "simulate/workloads.hpp"

namespace simulation_test {

using namespace edl::simulate;
using edl::autoscaler::pod_shape;

namespace {

job_spec work(std::string name, double submitted, double records, int max = 1, int min = 1) {
  job_spec j{.name = std::move(name), .submitted = submitted, .min = min, .max = max};
  j.worker.requests = {{"cpu", 1000}};
  j.work = std::make_shared<plain_work>(records, 1);
  return j;
}
job_outcome const& of(outcome const& o, std::string const& name) {
  return *std::find_if(o.jobs.begin(), o.jobs.end(), [&](job_outcome const& j) { return j.name == name; });
}

}  // namespace

TEST_CASE("one job takes its work through its speed, and a standstill at its start") {
  scenario const s{.nodes = alike(1, "n", {{"cpu", "4"}}), .jobs = {work("a", 10, 100, 4)}};
  outcome const o = simulate(s, {.plan = {.max_load = 1}, .standstill = 3});
  CHECK(of(o, "a").started == 10);
  CHECK(of(o, "a").completed == doctest::Approx(10 + 3 + 25));
  REQUIRE(o.resources == std::vector<std::string>{"cpu"});
  CHECK(o.utilisation[0] == doctest::Approx(1));
}

TEST_CASE("a second job halves the first, which grows back when it is done") {
  scenario const s{.nodes = alike(2, "n", {{"cpu", "2"}}),
                   .jobs = {work("a", 0, 400, 4), work("b", 50, 50, 4)}};
  outcome const o = simulate(s, {.plan = {.max_load = 1}, .standstill = 0});
  CHECK(of(o, "b").started == 50);  // at once
  CHECK(of(o, "b").completed == doctest::Approx(75));
  // 200 done at 50, 50 more at 75, the rest by four workers.
  CHECK(of(o, "a").completed == doctest::Approx(75 + 150 / 4.0).epsilon(0.02));
  CHECK(of(o, "a").resizes == 2);
}

TEST_CASE("plans at fixed times only: a job waits for the next") {
  scenario const s{.nodes = alike(1, "n", {{"cpu", "1"}}), .jobs = {work("a", 61, 100), work("b", 62, 10)}};
  outcome const o =
      simulate(s, {.plan = {.max_load = 1}, .decide_every = 60, .decide_at_events = false, .standstill = 0});
  CHECK(of(o, "a").started == 120);
  CHECK(of(o, "a").completed == doctest::Approx(220));
  CHECK(of(o, "b").started == 240);
}

TEST_CASE(
    "a service's burst shrinks a job, and has its pods when the leaving ones have gone and its own have "
    "started") {
  scenario const s{
      .nodes = alike(1, "n", {{"cpu", "10"}}),
      .jobs = {work("a", 0, 10'000, 10)},
      .services = {{.name = "web", .pod = {.requests = {{"cpu", 1000}}}, .load = {{100, 4}, {200, 0}}}}};
  outcome const o = simulate(s, {.plan = {.max_load = 1}, .standstill = 0, .pod_start = 5, .pod_stop = 2});
  REQUIRE(o.bursts.size() == 1);
  CHECK(o.bursts[0].waited == doctest::Approx(7));
  CHECK(summary_of(o.service_waits).p99 == doctest::Approx(7));
  CHECK(of(o, "a").resizes == 2);
}

TEST_CASE("what can never run is told, with the reason") {
  scenario const s{.nodes = alike(1, "n", {{"cpu", "1"}}), .jobs = {work("a", 0, 10, 3, 3)}};
  CHECK_THROWS_WITH_AS(
      simulate(s, {}),
      "job 'a' cannot run in this cluster: it waits: its 3 pods have no room, even if all others "
      "shrink to their min: they ask for cpu 3, of which 0.97 are left",
      edl::error);
  scenario card = s;
  card.jobs[0].worker.requests = {{"nvidia.com/gpu", 1000}};
  CHECK_THROWS_AS(simulate(card, {}), edl::error);
  CHECK_THROWS_AS(simulate({.nodes = s.nodes}, {}), edl::usage_error);
}

TEST_CASE("the same input gives the same outcome, also of a drawn one") {
  auto const o = [] { return to_json({{"x", simulate(generated(10, 30, 7), {})}}).dump(); };
  CHECK(o() == o());
}

TEST_CASE("reports say that they are simulated") {
  outcome const o = simulate(generated(4, 5, 1), {});
  CHECK(to_table({{"x", o}}).find("simulated, not measured") == 0);
  std::string const svg = to_svg("a<b", o);
  CHECK(svg.find("a&lt;b (simulated)") != svg.npos);
  CHECK(svg.find("jobs that wait") != svg.npos);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
}

TEST_CASE("the scheduler chooses the nodes: spread over the empty ones, or packed onto the full") {
  scenario s{.nodes = alike(2, "n", {{"cpu", "2"}}),
             .jobs = {work("a", 10, 100)},
             .services = {{.name = "web", .pod = {.requests = {{"cpu", 1000}}}, .load = {{0, 2}, {500, 0}}}}};
  s.jobs[0].worker.requests = {{"cpu", 2000}};
  rules by{.plan = {.max_load = 1}, .standstill = 0};
  CHECK(of(simulate(s, by), "a").started == 500);  // one pod of the service is on each node
  by.scheduler = placing::pack;
  CHECK(of(simulate(s, by), "a").started == 10);
}

TEST_CASE("what the controller does not do is simulated only on demand, and is labelled") {
  scenario const s = generated(4, 5, 1);
  outcome const real = simulate(s, {}), what_if = simulate(s, {.plan = {.move = true}});
  CHECK(real.what_if.empty());
  CHECK(to_table({{"x", real}}).find("what if") == std::string::npos);
  CHECK(to_json({{"x", real}})[0].count("what_if") == 0);
  CHECK(to_table({{"x", what_if}}).find("\nwhat if the controller chose") != std::string::npos);
  CHECK(to_json({{"x", what_if}})[0]["what_if"] == what_if.what_if);
  CHECK(to_svg("x", what_if).find("what if the controller chose") != std::string::npos);
}

}  // namespace simulation_test
