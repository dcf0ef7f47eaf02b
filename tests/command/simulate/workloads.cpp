// SPDX-License-Identifier: Apache-2.0
#include "simulate/workloads.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "edl/core/error.hpp"
#include "simulate/pollux.hpp"
#include "simulate/report.hpp"

namespace workloads_test {

using namespace edl::simulate;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path at = fs::temp_directory_path() / ("edl-simulate-" + std::to_string(::getpid()));
  folder() { fs::create_directories(at); }
  ~folder() { fs::remove_all(at); }
  std::string file(std::string const& name, std::string const& text) const {
    std::ofstream(at / name) << text;
    return (at / name).string();
  }
};

std::string pollux() {
  char const* data = std::getenv("EDL_TEST_DATA");
  std::string const path = (data ? std::string(data) : "../shared/data") + "/cluster-traces/pollux";
  if (fs::exists(path + "/traces/cifar10")) return path;
  MESSAGE("skipped: there are no cluster traces in " << path);
  return "";
}

struct result {
  double mean_h, worst_ratio;
};
result all_workloads(std::string const& root, std::string const& policy, batch how, double standstill,
                     bool events) {
  double sum = 0, worst = 0;
  int jobs = 0;
  for (int n = 1; n <= 8; ++n) {
    scenario const s =
        read_pollux(root + "/workloads/workload-" + std::to_string(n) + ".csv", root + "/traces", how);
    rules by{.decide_at_events = events, .standstill = standstill};
    std::vector<double> const fair = completions(simulate(s, by));
    by.plan.who = edl::autoscaler::policy_called(policy);
    std::vector<double> const done = policy == "fair" ? fair : completions(simulate(s, by));
    for (std::size_t i = 0; i < done.size(); ++i) {
      sum += done[i];
      ++jobs;
      worst = std::max(worst, done[i] / fair[i]);
    }
  }
  return {sum / jobs / 3600, worst};
}

}  // namespace

TEST_CASE("the examples read, and the experiments come out as documented") {
  std::string const examples = EDL_EXAMPLES;
  rules const by{.pod_start = 6, .pod_stop = 2};
  outcome const teams = simulate(read_scenario(examples + "/two-teams.yaml"), by);
  CHECK(teams.jobs.size() == 5);

  scenario first = read_scenario(examples + "/paddle-1.yaml");
  outcome const on = simulate(first, by);
  CHECK(summary_of(waits(on)).mean < 47.2);
  CHECK(on.utilisation[0] > 0.834);
  for (job_spec& j : first.jobs) j.min = j.max;
  outcome const off = simulate(first, by);
  CHECK(summary_of(waits(off)).mean ==
        doctest::Approx(308.5).epsilon(0.05));  // as published: the model is of that experiment

  outcome const second = simulate(read_scenario(examples + "/paddle-2.yaml"), by);
  outcome const fixed = simulate(read_scenario(examples + "/paddle-2-fixed.yaml"), by);
  CHECK(second.utilisation[0] > 0.834);
  CHECK(fixed.utilisation[0] == doctest::Approx(0.6186).epsilon(0.05));
  REQUIRE(second.bursts.size() == fixed.bursts.size());
  for (std::size_t i = 0; i < second.bursts.size(); ++i) {
    REQUIRE(second.bursts[i].waited >= 0);
    CHECK(second.bursts[i].waited <= fixed.bursts[i].waited + 10);
  }
}

TEST_CASE("what is wrong with a scenario is told with its place") {
  folder const in;
  auto const says = [&](std::string const& text) {
    try {
      read_scenario(in.file("s.yaml", text));
    } catch (edl::usage_error const& bad) {
      std::string const what = bad.what();
      return what.substr(std::min(what.size(), what.rfind("s.yaml") == what.npos ? 0 : what.rfind("s.yaml")));
    }
    return std::string("nothing");
  };
  CHECK(says("jobs: []") == "s.yaml: needs 'nodes'");
  CHECK(says("nodes: []") == "s.yaml.nodes: no nodes");
  CHECK(says("nodes: [{resources: {cpu: x}}]").find("s.yaml.nodes[0].resources: cpu: 'x'") == 0);
  CHECK(says("nodes: [{resources: {cpu: 1}, count: 0}]") ==
        "s.yaml.nodes[0].count: expected a number from 1 to 100000");
  CHECK(says("nodes: [{resources: {cpu: 1}}]\njobs: [{nam: a}]")
            .find("s.yaml.jobs[0]: 'nam' is unknown; expected one of name") == 0);
  CHECK(says("nodes: [{resources: {cpu: 1}}]\njobs: [{name: a, min: 3, max: 2, worker: {cpu: 1}, records: "
             "5}]") == "s.yaml.jobs[0]: max 2 is less than min 3");
  CHECK(
      says(
          "nodes: [{resources: {cpu: 1}}]\nservices: [{name: a, pod: {cpu: 1}, load: [{at: 1}, {at: 1}]}]") ==
      "s.yaml.services[0].load[1]: is not after the one before");
}

TEST_CASE("a log in the Philly format: jobs of at most the GPUs that they had") {
  folder const in;
  std::string const path =
      in.file("p.csv",
              "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:02:00,60,2,120,a\n"
              "2017-10-09 07:01:00,100,1,100,a\n2017-10-09 08:00:00,5,0,0,a\n");
  CHECK(format_of(path) == "philly");
  scenario s = read_philly(path, 10);
  REQUIRE(s.jobs.size() == 2);
  CHECK(s.jobs[0].name == "line-3");
  CHECK(s.jobs[1].submitted == 60);
  CHECK(s.jobs[1].max == 2);
  s.nodes = alike(1, "n", {{"nvidia.com/gpu", "4"}});
  outcome const o = simulate(s, {.standstill = 0});
  CHECK(o.jobs[0].completed == doctest::Approx(100));
  CHECK(o.jobs[1].completed == doctest::Approx(120));
  CHECK_THROWS_AS(read_philly(in.file("q.csv", "timestamp,duration,num_gpus\nyesterday,1,1\n"), 1),
                  edl::usage_error);
  CHECK_THROWS_AS(read_philly(in.file("r.csv", "timestamp,duration\n"), 1), edl::usage_error);
}

TEST_CASE("Pollux's measurements: what was measured is told as it is, and between it lies between") {
  std::string const root = pollux();
  if (root.empty()) return;
  pollux_application const app(root + "/traces/cifar10");
  CHECK(app.first_batch() == 128);
  CHECK(app.epochs() == 100);
  CHECK(app.time_of({1}, 32).step == doctest::Approx(0.0427886962890625));
  double const low = app.time_of({1}, 32).step, high = app.time_of({1}, 45).step,
               mid = app.time_of({1}, 40).step;
  CHECK(((low < mid && mid < high)));
  CHECK(app.time_of({2, 1}, 64).step == app.time_of({1, 2}, 64).step);
  CHECK(app.time_of({4, 4, 4, 4, 4, 4, 4}, 64).step > 0);
  CHECK(app.gain(128, 0) == doctest::Approx(1));
  CHECK(app.gain(1024, 50) > app.gain(256, 50));
  CHECK(app.gain(1024, 50) <= 8);
}

TEST_CASE("Pollux's workloads at load 1.0 with the published rules, and with edl's") {
  std::string const root = pollux();
  if (root.empty()) return;
  // Published by the same rules: 0.764 h for Pollux, 1.122 for Tiresias, 1.578 for Optimus.
  CHECK(all_workloads(root, "fair", batch::fixed, 30, false).mean_h < 1.12);
  CHECK(all_workloads(root, "fair", batch::fixed, 1, true).mean_h < 1.0);
  result const fixed = all_workloads(root, "completion", batch::fixed, 1, true);
  CHECK(fixed.mean_h < 0.83);
  CHECK(fixed.worst_ratio < 2);
  result const changing = all_workloads(root, "completion", batch::changing, 1, true);
  CHECK(changing.mean_h < 0.57);
  CHECK(changing.worst_ratio < 2);
}

}  // namespace workloads_test
