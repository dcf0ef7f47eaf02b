// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "cluster/autoscaler/world.hpp"
#include "cluster/kueue/kueue_double.hpp"

/// The cluster of `world.hpp` with Kueue in it.
namespace kueue_world {

using namespace edl::autoscaler;
using namespace edl::controller;
namespace k8s = edl::kubernetes;
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
  std::map<std::string, json> classes;  ///< PriorityClasses
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
      apply(edl::kueue::api_write::verb::create, path + "/" + name, object);
      return find(path + "/" + name);
    });
  }
  json patch(std::string const& path, json const& change, std::string const& kind) override {
    if (!of_kueue(path)) return world::cluster::patch(path, change, kind);
    bool const status = path.ends_with("/status");
    std::string const at = status ? path.substr(0, path.size() - 7) : path;
    return answered([&] {
      REQUIRE(kind == (status ? "merge" : "json"));
      apply(status ? edl::kueue::api_write::verb::patch_status : edl::kueue::api_write::verb::patch, at,
            change);
      return queue.objects.contains(key_of(at)) ? find(at) : queue.gone;
    });
  }
  json remove(std::string const& path, json const& how) override {
    if (!of_kueue(path)) return world::cluster::remove(path, how);
    return answered([&] {
      apply(edl::kueue::api_write::verb::remove, path, how);
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
        queue.apply(edl::kueue::remove(*edl::kueue::read_workload(w), ""));
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
  void apply(edl::kueue::api_write::verb what, std::string const& path, json const& body) {
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

/// A controller as a real one is: it lists once, then hears of changes, and looks at a job when a change or
/// its own clock says so. It hears of all changes, and of what they led to, before the answers to its own
/// requests.
class pass {
 public:
  int work(cluster& c) {
    follow(c);
    if (plan_ || c.now >= plan_at_) {
      plan_ = false;
      auto const planned = make_plan(control_.view(c.now), control_.planning());
      for (auto const& key : control_.take(planned)) due_[key] = c.now;
      plan_at_ = planned.again_at.value_or(never);
    }
    std::vector<std::string> keys;
    for (auto const& [key, at] : due_)
      if (at <= c.now) keys.push_back(key);
    int actions = 0;
    for (auto const& key : keys) {
      due_.erase(key);
      auto const t = control_.decide(key, c.now);
      actions += int(t.decision.actions.size()) + t.plan_anew;
      plan_ = plan_ || t.plan_anew;
      if (t.decision.again_at) look_at(key, *t.decision.again_at);
      if (t.decision.actions.empty()) continue;
      auto const came = execute(c, t.job, t.decision, options_);
      CAPTURE(came.why);
      CHECK(came.stalled != "KueueRefused");
      follow(c);
      note(control_.learn(t, came, c.now), c.now);
      if (came.look_again) look_at(key, c.now);
    }
    again_at = plan_at_;
    for (auto const& [key, at] : due_) again_at = std::min(again_at, at);
    return actions;
  }
  double again_at = 1e18;

 private:
  static constexpr double never = 1e18;

  void look_at(std::string const& key, double when) {
    auto const [at, fresh] = due_.try_emplace(key, when);
    if (!fresh) at->second = std::min(at->second, when);
  }
  void note(inventory_change const& change, double now) {
    for (auto const& key : change.jobs) look_at(key, now);
    plan_ = plan_ || change.plan != inventory_change::weight::none;
  }
  void note(edl::kueue::object_store::change const& change, double now) {
    for (auto const& key : control_.concerned(change)) look_at(key, now);
  }

  /// What of a kind has changed since it was looked at last.
  template <class Store, class Kind>
  void follow(Store& store, Kind k, std::map<std::string, json> const& all, auto const& newer, double now) {
    auto& shown = shown_[{typeid(Kind).hash_code(), int(k)}];
    bool const first = !shown;
    if (first) store.begin(k), shown.emplace();
    for (auto const& [path, o] : std::map(*shown))
      if (!all.contains(path)) {
        json last = o;
        last["metadata"]["resourceVersion"] = newer();
        note(store.remove(k, last), now);
        shown->erase(path);
      }
    for (auto const& [path, o] : all) {
      auto const [at, fresh] = shown->try_emplace(path, o);
      if (fresh || at->second != o) note(store.put(k, at->second = o), now);
    }
    if (first) note(store.end(k), now);
  }

  void follow(cluster& c) {
    auto const of = [&](auto const& is) {
      std::map<std::string, json> some;
      for (auto const& [path, o] : c.objects)
        if (is(path)) some.emplace(path, o);
      return some;
    };
    auto const newer = [&] { return c.next_version(); };
    auto const newer_workload = [&] { return c.queue.next_version(); };
    auto& known = control_.known();
    follow(known, object_kind::node, of([](auto& p) { return p.starts_with("/api/v1/nodes/"); }), newer,
           c.now);
    follow(known, object_kind::pod, of([](auto& p) { return p.find("/pods/") != p.npos; }), newer, c.now);
    follow(known, object_kind::job, of([](auto& p) { return p.find("/trainingjobs/") != p.npos; }), newer,
           c.now);
    follow(known, object_kind::priority_class, c.classes, newer, c.now);
    auto& queues = control_.queues();
    queues.serves(true);
    follow(queues, edl::kueue::kueue_kind::workload, c.queue.objects, newer_workload, c.now);
    follow(queues, edl::kueue::kueue_kind::flavor, {{"spot", c.flavor}}, newer_workload, c.now);
    follow(queues, edl::kueue::kueue_kind::priority_class, {}, newer_workload, c.now);
    REQUIRE(queues.complete());
  }

  control control_{{.max_load = 1, .move = false}};
  execute_options options_;
  std::map<std::pair<std::size_t, int>, std::optional<std::map<std::string, json>>> shown_;  ///< by kind
  std::map<std::string, double> due_;  ///< jobs that are to be looked at, and when
  bool plan_ = true;
  double plan_at_ = never;
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
