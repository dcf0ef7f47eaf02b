// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "cluster/autoscaler/world.hpp"
#include "cluster/kueue/kueue_double.hpp"

/// The cluster of `world.hpp` with Kueue in it.
namespace kueue_world {

using namespace edl::controller;
namespace k8s = edl::platform::kubernetes;
using kueue_double::condition_true;
using world::json;
using world::killed;
namespace kd = kueue_double;

class cluster : public world::cluster {
 public:
  explicit cluster(std::int64_t cpus) : kueue(cpus) {
    flavor = R"({"metadata": {"name": "spot", "resourceVersion": "1"}, "spec": {"nodeLabels": {"disk": "ssd"},
                 "tolerations": [{"key": "spot", "operator": "Exists"}]}})"_json;
  }

  kd::server queue;
  kd::scheduler kueue;
  json flavor;
  bool kueue_runs = true;

  json& add_queued(std::string const& name, int min, int max, int servers = 0, bool elastic = false,
                   std::string const& space = "team") {
    json& j = add_job(name, min, max, servers, space);
    j["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q";
    if (elastic) j["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"] = "true";
    return j;
  }

  /// The job's Workload that is not finished; empty: none.
  std::string workload_of(std::string const& name, std::string const& space = "team") const {
    std::string found;
    for (auto const& [key, w] : queue.objects)
      if (key.starts_with(space + "/tj-" + name + "-") && !condition_true(w, "Finished")) found = key;
    return found;
  }

  json get(std::string const& path) override {
    return of_kueue(path) ? answered([&] { return find(path); }) : world::cluster::get(path);
  }
  json create(std::string const& path, json const& object) override {
    if (!of_kueue(path)) return world::cluster::create(path, object);
    return answered([&] {
      std::string const name = object["metadata"]["name"];
      apply(kueue::api_write::verb::create, path + "/" + name, object);
      return find(path + "/" + name);
    });
  }
  json patch(std::string const& path, json const& change, std::string const& kind) override {
    if (!of_kueue(path)) return world::cluster::patch(path, change, kind);
    bool const status = path.ends_with("/status");
    std::string const at = status ? path.substr(0, path.size() - 7) : path;
    return answered([&] {
      REQUIRE(kind == (status ? "merge" : "json"));
      apply(status ? kueue::api_write::verb::patch_status : kueue::api_write::verb::patch, at, change);
      return queue.objects.contains(key_of(at)) ? find(at) : json{{"metadata", {{"name", "gone"}}}};
    });
  }
  json remove(std::string const& path, json const& how) override {
    if (!of_kueue(path)) return world::cluster::remove(path, how);
    return answered([&] {
      apply(kueue::api_write::verb::remove, path, how);
      return json::object();
    });
  }

  /// Everybody but the controller does the next step.
  void step() {
    world::cluster::step();
    queue.now = now;
    std::set<std::string> jobs;
    for (auto const& path : paths("/trainingjobs/")) jobs.insert(objects.at(path)["metadata"]["uid"]);
    for (auto const& [key, w] : std::map(queue.objects))
      if (!jobs.contains(w["metadata"]["ownerReferences"][0]["uid"]) &&
          !w["metadata"].contains("deletionTimestamp"))
        queue.apply(kueue::remove(*kueue::read_workload(w), ""));
    if (kueue_runs) kueue.step(queue);
  }

  /// No pod of a queued job is without quota.
  void check() const {
    std::map<std::string, std::int64_t> quota, pods;
    for (auto const& [key, w] : queue.objects)
      quota[w["metadata"]["ownerReferences"][0]["uid"]] += kd::scheduler::held_by(w);
    for (auto const& [path, p] : objects) {
      if (path.find("/pods/") == path.npos || over(p) || !p["metadata"].contains("ownerReferences")) continue;
      pods[p["metadata"]["ownerReferences"][0]["uid"]] += kd::scheduler::cpu_of(p);
    }
    std::set<std::string> queued;
    for (auto const& path : paths("/trainingjobs/"))
      if (objects.at(path)["metadata"].contains("labels")) queued.insert(objects.at(path)["metadata"]["uid"]);
    for (auto const& [uid, cpu] : pods) {
      if (!queued.contains(uid)) continue;
      CAPTURE(uid);
      CHECK(cpu <= quota[uid]);
    }
  }

 private:
  static bool of_kueue(std::string const& path) { return path.starts_with("/apis/kueue.x-k8s.io/"); }
  static std::string key_of(std::string const& path) {
    auto const from = path.find("/namespaces/") + 12, to = path.find("/workloads/");
    return path.substr(from, to - from) + path.substr(to + 10);
  }
  json find(std::string const& path) const {
    auto const at = queue.objects.find(key_of(path));
    if (at == queue.objects.end()) throw k8s::api_error(404, "NotFound", path, path);
    return at->second;
  }
  void apply(kueue::api_write::verb what, std::string const& path, json const& body) {
    std::string const key = key_of(path);
    try {
      queue.apply({what, key.substr(0, key.find('/')), key.substr(key.find('/') + 1), body.dump()});
    } catch (kd::refusal const& e) {
      throw k8s::api_error(e.code, e.code == 409 ? "Conflict" : "Refused", e.what(), e.what());
    }
  }
  template <class Do>
  json answered(Do const& what) {
    if (budget == 0) throw killed{};
    ++requests;
    json const answer = what();
    if (budget > 0 && --budget == 0) throw killed{};
    return answer;
  }
};

/// A controller that looks at everything once.
class pass {
 public:
  int work(cluster& c) {
    auto const list = [&](auto& to, auto k, auto const& all, auto const& is) {
      to.begin(k);
      for (auto const& [path, o] : all)
        if (is(path)) to.put(k, o);
      to.end(k);
    };
    auto const any = [](auto&) { return true; };
    auto& known = control_.known();
    list(known, object_kind::node, c.objects, [](auto& p) { return p.starts_with("/api/v1/nodes/"); });
    list(known, object_kind::pod, c.objects, [](auto& p) { return p.find("/pods/") != p.npos; });
    list(known, object_kind::job, c.objects, [](auto& p) { return p.find("/trainingjobs/") != p.npos; });
    list(known, object_kind::priority_class, c.objects, [](auto&) { return false; });
    control_.queues().serves(true);
    list(control_.queues(), kueue::kueue_kind::workload, c.queue.objects, any);
    list(control_.queues(), kueue::kueue_kind::flavor, std::map<std::string, json>{{"spot", c.flavor}}, any);
    list(control_.queues(), kueue::kueue_kind::priority_class, std::map<std::string, json>{}, any);
    REQUIRE(control_.queues().complete());

    auto const planned = make_plan(control_.view(c.now), control_.planning());
    control_.take(planned);
    again_at = planned.again_at.value_or(1e18);
    std::set<std::string> keys;
    for (auto const& [key, e] : known.jobs()) keys.insert(key);
    for (auto const& [owner, all] : control_.queues().workloads())
      for (auto const& [key, w] : all) keys.insert(w.space + "/" + w.job);
    int actions = 0;
    for (auto const& key : keys) {
      auto const t = control_.decide(key, c.now);
      actions += int(t.decision.actions.size()) + t.plan_anew;
      if (t.decision.again_at) again_at = std::min(again_at, *t.decision.again_at);
      if (t.decision.actions.empty()) continue;
      auto const came = execute(c, t.job, t.decision, options_);
      CAPTURE(came.why);
      CHECK(came.stalled != "KueueRefused");
      control_.learn(t, came, c.now);
    }
    return actions;
  }
  double again_at = 1e18;

 private:
  control control_{{.max_load = 1, .move = false}};
  execute_options options_;
};

inline void converge(cluster& c, pass& with, int most = 150) {
  for (int rounds = 0, quiet = 0; rounds < most && quiet < 4; ++rounds) {
    auto const before = c.objects;
    auto const queued = c.queue.objects;
    int const done = with.work(c);
    c.check();
    c.step();
    c.check();
    bool const waits = with.again_at < c.now + 15;
    quiet = done == 0 && c.objects == before && c.queue.objects == queued && !waits ? quiet + 1 : 0;
  }
}

}  // namespace kueue_world
