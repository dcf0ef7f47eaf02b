// SPDX-License-Identifier: Apache-2.0
// How long a plan takes: a cluster that is empty, one that is at rest, and one in which a service wants room
// and a node was lost. In time of the processor, so that others on the machine do not count.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <random>

#include "edl/cluster/autoscaler/autoscaler.hpp"

namespace {

using namespace edl::autoscaler;

cluster_view made(int nodes, int jobs, unsigned seed) {
  std::mt19937 random(seed);
  auto const upto = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(random); };
  cluster_view v{.now = 1000};
  label_pool labels;
  std::map<std::int64_t, shared<pod_shape>> services;
  for (int i = 0; i < nodes; ++i) {
    node n{.name = fmt::format("node-{}", i)};
    bool const has_cards = i % 2 == 0;
    n.allocatable = {{"cpu", (has_cards ? 64 : 32) * 1000}, {"memory", 256ll << 40}, {pod_slots, 110'000}};
    if (has_cards) n.allocatable["nvidia.com/gpu"] = 8000;
    // As many labels as clouds give their nodes.
    std::map<std::string, std::string> has{
        {"kubernetes.io/hostname", n.name},
        {"zone", fmt::format("z{}", i % 3)},
        {"topology.ebs.csi.example.com/zone", fmt::format("region-1{}", i % 3)}};
    for (int l = 0; l < 12; ++l)
      has[fmt::format("node.example.com/property-{}", l)] = fmt::format("some-value-{}", l);
    n.labels = labels.of(has);
    if (i % 10 == 0) n.taints.push_back({"dedicated", "training", "NoSchedule"});
    v.nodes.push_back(std::move(n));
    for (int s = upto(0, 3); s > 0; --s) {
      std::int64_t const cores = upto(1, 4);
      auto& shape = services[cores];
      if (shape->requests.empty())
        shape = pod_shape{.requests = {{"cpu", cores * 1000}, {"memory", 4ll << 40}}};
      v.pods.push_back(
          {.name = fmt::format("service-{}-{}", i, s), .node = v.nodes.back().name, .shape = shape});
    }
  }
  for (int i = 0; i < jobs; ++i) {
    job_view j{.uid = fmt::format("job-{}", i), .name = fmt::format("team/job-{}", i), .min = upto(1, 4)};
    j.max = j.min + upto(0, 120);
    j.priority = upto(0, 9) == 0;
    j.submitted = i;
    j.worker.requests = {{"cpu", upto(1, 6) * 1000}, {"memory", upto(1, 16) * (1ll << 40)}};
    if (upto(0, 1)) j.worker.requests["nvidia.com/gpu"] = upto(1, 2) * 1000;
    if (upto(0, 3) == 0) j.worker.node_selector["zone"] = fmt::format("z{}", upto(0, 2));
    if (upto(0, 1)) j.worker.tolerations.push_back({"dedicated", "training", ""});
    j.records_left = upto(1000, 1'000'000);
    j.speeds = {{1, 100}, {4, 100.0 * upto(20, 40) / 10}};
    j.fixed.assign(2, {.requests = {{"cpu", 1000}, {"memory", 1ll << 40}}});
    v.jobs.push_back(std::move(j));
  }
  return v;
}

int apply(cluster_view& v, plan const& p) {
  int changes = 0;
  std::vector<std::string> leaving;
  for (std::size_t i = 0; i < v.jobs.size(); ++i) {
    job_view& j = v.jobs[i];
    job_plan const& to = p.jobs[i];
    leaving.insert(leaving.end(), to.leaving.begin(), to.leaving.end());
    changes += int(to.leaving.size() + to.nodes.size() + to.moves.size());
    shared<pod_shape> const worker = j.worker;
    for (std::size_t f = 0; f < to.fixed_nodes.size(); ++f)
      v.pods.push_back(
          {.name = fmt::format("{}-fixed-{}", j.uid, f), .node = to.fixed_nodes[f], .shape = j.fixed[f]});
    if (to.admitted) j.fixed.clear();
    auto const start = [&](std::string const& on) {
      v.pods.push_back(
          {.name = fmt::format("{}-{}", j.uid, v.pods.size()), .job = j.uid, .node = on, .shape = worker});
    };
    for (std::string const& on : to.nodes) start(on);
    for (worker_move const& m : to.moves) {
      leaving.push_back(m.pod);
      start(m.node);
    }
    if (j.workers != to.workers || !to.moves.empty()) j.last_resized = v.now;
    j.workers = to.workers;
    j.admitted = to.admitted;
  }
  std::sort(leaving.begin(), leaving.end());
  std::erase_if(v.pods,
                [&](pod const& w) { return std::binary_search(leaving.begin(), leaving.end(), w.name); });
  for (reservation const& r : p.reservations)
    for (pod& w : v.pods)
      if (w.name == r.pod) w.node = r.node;
  return changes;
}

}  // namespace

int main() {
  fmt::print("{:>10} {:>6} {:>6} {:>8} {:<34} {:>8} {:>9}\n", "policy", "nodes", "jobs", "pods",
             "a plan when", "cpu ms", "changes");
  for (policy const& who : policies())
    for (auto [nodes, jobs] : {std::pair(100, 10), std::pair(1000, 100), std::pair(10'000, 1000)}) {
      auto const bytes = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
      auto const before = bytes();
      cluster_view v = made(nodes, jobs, 1);
      fmt::print("a view of {} nodes, {} jobs and {} pods: {:.1f} MB\n", nodes, jobs, v.pods.size(),
                 double(bytes() - before) / 1e6);
      plan_options const options{.who = who};
      auto const ask = [&](char const* when) {
        auto const pods = v.pods.size();
        std::clock_t const began = std::clock();
        plan const p = make_plan(v, options);
        double const ms = 1e3 * double(std::clock() - began) / CLOCKS_PER_SEC;
        fmt::print("{:>10} {:>6} {:>6} {:>8} {:<34} {:>8.1f} {:>9}\n", who.name, nodes, jobs, pods, when, ms,
                   apply(v, p));
        v.now += 1000;
      };
      ask("nothing runs yet");
      ask("all is at rest");
      for (int i = 0; i < nodes / 10; ++i)
        v.pods.push_back({.name = fmt::format("burst-{}", i),
                          .shape = pod_shape{.requests = {{"cpu", 8000}, {"memory", 8ll << 40}}}});
      ask("a service wants a tenth of the nodes");
      std::erase_if(v.pods, [&](pod const& w) { return w.node == "node-2"; });
      v.nodes.erase(v.nodes.begin() + 2);
      ask("a node was lost");
      for (int i = 0; i < jobs / 10; ++i) {
        std::string const gone = v.jobs.front().uid;
        std::erase_if(v.pods, [&](pod const& w) { return w.job == gone; });
        v.jobs.erase(v.jobs.begin());
      }
      ask("a tenth of the jobs has ended");
    }
}
