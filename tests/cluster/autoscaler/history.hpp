// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/autoscaler/fitting.hpp"

/// A cluster that does what plans say, and random ones with random histories.
namespace history {

using namespace edl::autoscaler;

inline pod_shape cores(std::int64_t n, std::int64_t gib = 1) {
  return {.requests = {{"cpu", n * 1000}, {"memory", gib * (1ll << 30) * 1000}}};
}
inline pod_shape gpus(std::int64_t n) { return {.requests = {{"nvidia.com/gpu", n * 1000}}}; }
inline node machine(std::string name, std::int64_t cpus, std::int64_t cards = 0) {
  node n{.name = std::move(name), .allocatable = cores(cpus, 4 * cpus).requests};
  n.allocatable[pod_slots] = 110'000;
  if (cards > 0) n.allocatable["nvidia.com/gpu"] = cards * 1000;
  return n;
}
inline job_view one(std::string uid, int min, int max, pod_shape worker) {
  job_view j{.uid = uid, .min = min, .max = max, .worker = std::move(worker)};
  j.name = std::move(uid);
  return j;
}

inline job_view& job_of(cluster_view& v, std::string const& uid) {
  return *std::find_if(v.jobs.begin(), v.jobs.end(), [&](job_view const& j) { return j.uid == uid; });
}
inline job_plan const& plan_of(plan const& p, std::string const& uid) {
  return *std::find_if(p.jobs.begin(), p.jobs.end(), [&](job_plan const& j) { return j.uid == uid; });
}

/// Carries a plan out. Pods for which room is kept get it, or are only promised it.
inline void apply(cluster_view& v, plan const& p, bool bind = true) {
  static int serial = 0;
  for (job_plan const& to : p.jobs) {
    job_view& j = job_of(v, to.uid);
    std::erase_if(v.pods, [&](pod const& w) {
      return std::find(to.leaving.begin(), to.leaving.end(), w.name) != to.leaving.end();
    });
    for (std::size_t f = 0; f < to.fixed_nodes.size(); ++f)
      v.pods.push_back({.name = j.uid + "-fixed-" + std::to_string(++serial),
                        .node = to.fixed_nodes[f],
                        .shape = j.fixed[f]});
    if (to.admitted && !to.fixed_nodes.empty()) j.fixed.clear();
    for (std::string const& on : to.nodes)
      v.pods.push_back(
          {.name = j.uid + "-" + std::to_string(++serial), .job = j.uid, .node = on, .shape = j.worker});
    for (worker_move const& m : to.moves) {
      std::erase_if(v.pods, [&](pod const& w) { return w.name == m.pod; });
      v.pods.push_back(
          {.name = j.uid + "-" + std::to_string(++serial), .job = j.uid, .node = m.node, .shape = j.worker});
    }
    auto const has = std::count_if(v.pods.begin(), v.pods.end(),
                                   [&](pod const& w) { return w.job == j.uid && !w.leaving; });
    for (auto n = has; n < to.workers; ++n)
      v.pods.push_back({.name = j.uid + "-" + std::to_string(++serial), .job = j.uid, .shape = j.worker});
    if (j.workers != to.workers || !to.moves.empty()) j.last_resized = v.now;
    j.workers = to.workers;
    j.admitted = to.admitted;
  }
  for (reservation const& r : p.reservations)
    for (pod& w : v.pods)
      if (w.name == r.pod) {
        (bind ? w.node : w.nominated) = r.node;
        w.nominated_at = r.since;
      }
}

/// What a plan would change, in words; empty: nothing.
inline std::string changes(cluster_view const& v, plan const& p) {
  std::string all;
  for (job_plan const& to : p.jobs) {
    job_view const& j =
        *std::find_if(v.jobs.begin(), v.jobs.end(), [&](job_view const& x) { return x.uid == to.uid; });
    if (to.leaving.empty() && to.nodes.empty() && to.moves.empty() && to.workers == j.workers &&
        to.admitted == j.admitted)
      continue;
    all += j.uid + " from " + std::to_string(j.workers) + " to " + std::to_string(to.workers) + " (" +
           to.reason + "), " + std::to_string(to.leaving.size()) + " leave, " +
           std::to_string(to.nodes.size()) + " come, " + std::to_string(to.moves.size()) + " move\n";
  }
  return all;
}
inline bool changes_nothing(cluster_view const& v, plan const& p) { return changes(v, p).empty(); }

/// What is wrong with a cluster in which a plan was carried out. A node may have more on it than it has room
/// for, or what it does not let in.
inline std::string wrong(cluster_view const& v) {
  std::map<std::string, resources> used;
  for (pod const& w : v.pods) {
    if (w.node.empty()) continue;
    auto const on =
        std::find_if(v.nodes.begin(), v.nodes.end(), [&](node const& n) { return n.name == w.node; });
    if (on == v.nodes.end()) continue;
    for (separation const& a : w.shape->apart)
      for (pod const& o : v.pods) {
        auto const there =
            std::find_if(v.nodes.begin(), v.nodes.end(), [&](node const& n) { return n.name == o.node; });
        std::string const *mine = on->labels.find(a.topology),
                          *its = there == v.nodes.end() ? nullptr : there->labels.find(a.topology);
        bool const marked = std::count(o.shape->marks.begin(), o.shape->marks.end(), a.mark) > 0;
        if (&o != &w && marked && mine && its && *mine == *its)
          return w.name + " is not apart from " + o.name;
      }
    if (on->schedulable && !allows(*on, *w.shape)) return w.name + " may not be on " + w.node;
    for (auto const& [name, amount] : w.shape->requests) {
      auto const has = on->allocatable.find(name);
      if ((used[w.node][name] += amount) > (has == on->allocatable.end() ? 0 : has->second))
        return "too much " + name + " on " + w.node;
    }
    if ((used[w.node][pod_slots] += 1000) > on->allocatable.at(pod_slots))
      return "too many pods on " + w.node;
  }
  return "";
}

inline int workers_of(cluster_view const& v, std::string const& uid) {
  return int(
      std::count_if(v.pods.begin(), v.pods.end(), [&](pod const& w) { return w.job == uid && !w.leaving; }));
}

/// Many nodes of two kinds with services on them, and jobs of many sizes, of which nobody has been let in.
inline cluster_view large(int nodes, int jobs, unsigned seed) {
  std::mt19937 random(seed);
  auto const upto = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(random); };
  cluster_view v{.now = 1000};
  for (int i = 0; i < nodes; ++i) {
    node n = machine("n" + std::to_string(i), i % 2 == 0 ? 64 : 32, i % 2 == 0 ? 8 : 0);
    n.labels.set("zone", std::to_string(i % 3));
    if (i % 10 == 0) n.taints.push_back({"dedicated", "training", "NoSchedule"});
    pod_shape service = cores(upto(1, 4), 4);
    service.tolerations.push_back({"dedicated", "", "", true});
    for (int s = upto(0, 3); s > 0; --s)
      v.pods.push_back({.name = n.name + "-s" + std::to_string(s), .node = n.name, .shape = service});
    v.nodes.push_back(std::move(n));
  }
  for (int i = 0; i < jobs; ++i) {
    int const min = upto(1, 4);
    job_view j = one("j" + std::to_string(i), min, min + upto(0, 120), cores(upto(1, 6), upto(1, 16)));
    j.priority = upto(0, 9) == 0;
    j.submitted = i;
    if (upto(0, 1)) j.worker.requests["nvidia.com/gpu"] = upto(1, 2) * 1000;
    if (upto(0, 3) == 0) j.worker.node_selector["zone"] = std::to_string(upto(0, 2));
    if (upto(0, 1)) j.worker.tolerations.push_back({"dedicated", "training", ""});
    j.records_left = upto(1000, 1'000'000);
    j.speeds = {{1, 100}, {4, 10.0 * upto(20, 40)}};
    j.fixed.assign(2, cores(1));
    v.jobs.push_back(std::move(j));
  }
  return v;
}

/// Random clusters and what happens in them; decided by the seed.
class world {
 public:
  explicit world(unsigned seed) : random_(seed) {
    int const n = upto(1, 12);
    for (int i = 0; i < n; ++i) {
      node m = machine("n" + std::to_string(i), upto(2, 16), chance(40) ? upto(1, 8) : 0);
      m.labels.set("zone", chance(50) ? "a" : "b");
      m.labels.set("host", m.name);
      if (chance(20)) m.taints.push_back({"dedicated", "training", "NoSchedule"});
      if (chance(10)) m.allocatable[pod_slots] = upto(1, 6) * 1000;
      if (chance(20)) m.allocatable["example.com/fpga"] = upto(1, 3) * 1000;
      view.nodes.push_back(std::move(m));
    }
    for (int i = upto(0, 5); i > 0; --i) add_job();
  }

  /// Lets time pass and something happen.
  void happen() {
    view.now += upto(0, 30);
    switch (upto(0, 9)) {
      case 0:
      case 1:
      case 2:
        return add_job();
      case 3:
      case 4: {  // a service grows
        int const n = upto(1, 6);
        pod_shape const s = shape();
        for (int i = 0; i < n; ++i)
          view.pods.push_back({.name = "s" + std::to_string(++serial_), .shape = s});
        return;
      }
      case 5: {  // and shrinks
        std::erase_if(view.pods, [&](pod const& p) { return p.name[0] == 's' && chance(50); });
        return;
      }
      case 6: {  // a job ends
        if (view.jobs.empty()) return;
        auto const at = view.jobs.begin() + upto(0, int(view.jobs.size()) - 1);
        std::erase_if(view.pods, [&](pod const& p) { return p.job == at->uid; });
        view.jobs.erase(at);
        return;
      }
      case 7: {  // a node comes or goes
        node& n = view.nodes[std::size_t(upto(0, int(view.nodes.size()) - 1))];
        n.schedulable = !n.schedulable;
        if (!n.schedulable) std::erase_if(view.pods, [&](pod const& p) { return p.node == n.name; });
        return;
      }
      case 8: {  // a job tells its speed
        for (job_view& j : view.jobs)
          if (j.workers > 0)
            j.speeds.push_back({j.workers, 100.0 * j.workers / (1 + 0.01 * upto(0, 30) * j.workers)});
        return;
      }
      default: {
        for (job_view& j : view.jobs)
          if (chance(10)) {
            j.suspended = !j.suspended;
          } else if (chance(20)) {
            j.records_left = upto(1, 100'000);
          }
      }
    }
  }

  cluster_view view;

 private:
  int upto(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return upto(1, 100) <= percent; }
  pod_shape shape() {
    pod_shape s = cores(upto(1, 4), upto(1, 8));
    if (chance(30)) s.requests["nvidia.com/gpu"] = upto(1, 2) * 1000;
    if (chance(10)) s.requests["example.com/fpga"] = 1000;
    if (chance(20)) s.node_selector["zone"] = chance(50) ? "a" : "b";
    if (chance(40)) s.tolerations.push_back({"dedicated", "", "", true});
    if (chance(10)) s.apart = {{chance(50) ? "red" : "blue", chance(70) ? "host" : "zone"}};
    if (chance(20)) s.marks = {chance(50) ? "red" : "blue"};
    if (chance(10)) s.affinity = {{{"zone", requirement::relation::not_in, {"b"}}}};
    return s;
  }
  void add_job() {
    int const min = upto(0, 3);
    job_view j = one("j" + std::to_string(++serial_), min, min + upto(0, 12), shape());
    j.priority = chance(30) ? upto(-1, 2) : 0;
    j.submitted = view.now;
    j.change_cost = chance(80) ? 1 : 30;
    for (int i = upto(0, 2); i > 0; --i) j.fixed.push_back(cores(1));
    view.jobs.push_back(std::move(j));
  }

  std::mt19937 random_;
  int serial_ = 0;
};

}  // namespace history
