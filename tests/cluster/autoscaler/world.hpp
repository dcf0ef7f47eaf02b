// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "edl/cluster/controller/api_requests.hpp"
#include "edl/cluster/controller/control.hpp"
#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/wall_time.hpp"

/// A cluster without processes and without time of its own. It is an API server's objects, a scheduler, a
/// kubelet and masters that do as they are told, one round after the other. What a controller does in it can
/// be stopped after any request.
namespace world {

using nlohmann::json;
using namespace edl::autoscaler;
using namespace edl::controller;
namespace k8s = edl::kubernetes;
using edl::role;

/// The controller is killed.
struct killed {};

class cluster : public api_requests {
 public:
  std::map<std::string, json> objects;
  double now = 1'800'000'000;
  int budget = -1;  ///< requests until the controller is killed, after the request; -1: never
  int requests = 0;
  std::function<void(std::string const& verb, std::string const& path)> refuse{};  ///< may throw
  int minor = 36;                    ///< version 1.MINOR: one before 35 refuses fields that it does not know
  bool no_image = false;             ///< no node has the jobs' image, and none may be pulled
  std::vector<std::string> created;  ///< names of masters' pods, ever

  // What a controller asks for.

  json get(std::string const& path) override {
    return asked("get", path, [&] { return find(path); });
  }
  json create(std::string const& path, json const& object) override {
    return asked("create", path, [&] { return make(path, object); });
  }
  json patch(std::string const& path, json const& change, std::string const& kind) override {
    return asked("patch", path, [&] {
      bool const status = path.ends_with("/status");
      std::string const at = status ? path.substr(0, path.size() - 7) : path;
      json next = find(at);
      std::string const uid = next["metadata"]["uid"], version = next["metadata"]["resourceVersion"];
      if (kind == "json")
        next = next.patch(change);
      else
        next.merge_patch(change);
      if (next["metadata"]["resourceVersion"] != version || next["metadata"]["uid"] != uid)
        fail(409, "Conflict", "it has changed");
      put(at, next);
      reap(at);
      return objects.contains(at) ? objects.at(at) : next;
    });
  }
  json remove(std::string const& path, json const& how) override {
    return asked("delete", path, [&] {
      json const was = find(path);
      std::string const uid = how.value("/preconditions/uid"_json_pointer, "");
      if (!uid.empty() && was["metadata"]["uid"] != uid) fail(409, "Conflict", "the uid is another");
      erase(path, how.value("gracePeriodSeconds", 30));
      return was;
    });
  }

  // What others do.

  /// Nobody hears the node's kubelet any more; the API server keeps its Node and its pods.
  void silence_node(std::string const& name) {
    json node = objects.at("/api/v1/nodes/" + name);
    node["status"]["conditions"][0]["status"] = "Unknown";
    put("/api/v1/nodes/" + name, node);
  }
  /// Its kubelet says whether it has this.
  void set_condition(std::string const& name, std::string const& type, bool has) {
    json node = objects.at("/api/v1/nodes/" + name);
    node["status"]["conditions"][1] = {{"type", type}, {"status", has ? "True" : "False"}};
    put("/api/v1/nodes/" + name, node);
  }
  void add_node(std::string const& name, int cpu, json const& labels = json::object()) {
    json n{{"metadata", {{"name", name}, {"labels", labels}}},
           {"status",
            {{"allocatable", {{"cpu", std::to_string(cpu)}, {"memory", "64Gi"}, {"pods", "110"}}},
             {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    put("/api/v1/nodes/" + name, n);
  }

  static std::string job_path(std::string const& name, std::string const& space = "team") {
    return fmt::format("/apis/elasticdl.org/v1alpha1/namespaces/{}/trainingjobs/{}", space, name);
  }
  static std::string pod_path(std::string const& name, std::string const& space = "team") {
    return fmt::format("/api/v1/namespaces/{}/pods/{}", space, name);
  }

  json& add_job(std::string const& name, int min, int max, int servers = 0,
                std::string const& space = "team") {
    json const like =
        R"({"spec": {"containers": [{"name": "main", "image": "edl:mnist", "resources": {"requests": {"cpu": "1"}}}]}})"_json;
    json j{{"apiVersion", "elasticdl.org/v1alpha1"},
           {"kind", "TrainingJob"},
           {"metadata", {{"name", name}, {"namespace", space}, {"generation", 1}}},
           {"spec",
            {{"model", "mnist"},
             {"flags", json::array()},
             {"master", {{"template", like}}},
             {"workers", {{"min", min}, {"max", max}, {"template", like}}}}}};
    if (servers > 0) j["spec"]["servers"] = {{"replicas", servers}, {"template", like}};
    make(job_path("", space).substr(0, job_path("", space).size() - 1), j);
    return objects.at(job_path(name, space));
  }

  void change_spec(std::string const& name, json const& change, std::string const& space = "team") {
    json next = objects.at(job_path(name, space));
    next["spec"].merge_patch(change);
    next["metadata"]["generation"] = next["metadata"]["generation"].get<int>() + 1;
    put(job_path(name, space), next);
  }

  /// The end of a pod's container.
  void ends(std::string const& name, int code, std::string const& space = "team") {
    json p = objects.at(pod_path(name, space));
    p["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
    p["status"]["containerStatuses"] = {
        {{"state", {{"terminated", {{"exitCode", code}, {"reason", "Error"}}}}}}};
    put(pod_path(name, space), p);
  }

  /// The node has gone, and its pods are as its kubelet left them.
  void lose_node(std::string const& name) { objects.erase("/api/v1/nodes/" + name); }

  /// Somebody deletes it.
  void erase(std::string const& path, int grace = 30) {
    if (!objects.contains(path)) return;
    json o = objects.at(path);
    bool const pod = o.value("kind", "") == "Pod";
    if (pod && (o["spec"].value("nodeName", "").empty() || over(o))) grace = 0;
    if (!o["metadata"].contains("deletionTimestamp") || grace == 0) {
      o["metadata"]["deletionTimestamp"] = edl::stamp_of(now + grace);
      o["metadata"]["deletionGracePeriodSeconds"] = grace;
    }
    if (!pod) o["metadata"]["deletionGracePeriodSeconds"] = 0;
    put(path, o);
    reap(path);
  }

  // Rounds.

  /// Scheduler, kubelets, masters and the garbage collector each do their next step.
  void step() {
    now += 1;
    for (auto const& path : paths("/pods/")) {
      if (!objects.contains(path)) continue;
      json p = objects.at(path);
      std::string const node = p["spec"].value("nodeName", "");
      bool const alive = objects.contains("/api/v1/nodes/" + node);
      if (p["metadata"].contains("deletionTimestamp")) {
        if (!node.empty() && !alive) continue;  // nobody tells that it has ended
        if (!over(p)) ends_by_signal(p);
        p["metadata"]["deletionGracePeriodSeconds"] = 0;
        put(path, p);
        reap(path);
      } else if (node.empty()) {
        place(path, p);
      } else if (no_image) {
        p["status"]["containerStatuses"] = {
            {{"state",
              {{"waiting",
                {{"reason", "ErrImageNeverPull"},
                 {"message", "Container image \"edl:mnist\" is not present with pull policy of Never"}}}}},
             {"ready", false}}};
        put(path, p);
      } else if (alive && p["status"].value("phase", "") == "Pending") {
        p["status"]["phase"] = "Running";
        p["status"]["containerStatuses"] = {{{"state", {{"running", json::object()}}}, {"ready", true}}};
        put(path, p);
      }
    }
    for (auto const& path : paths("-master"))
      if (objects.contains(path) && path.find("/pods/") != path.npos) act(path);
    collect();
  }

  void annotate(std::string const& path, char const* name, json const& value) {
    json o = objects.at(path);
    o["metadata"]["annotations"].erase(name);
    if (!value.is_null()) o["metadata"]["annotations"][name] = value;
    put(path, o);
  }

  /// Newer than all that has happened.
  std::string next_version() { return std::to_string(++version_); }

  // What is there.

  std::vector<std::string> paths(std::string const& with) const {
    std::vector<std::string> all;
    for (auto const& [path, o] : objects)
      if (path.find(with) != path.npos) all.push_back(path);
    return all;
  }
  json status(std::string const& name, std::string const& space = "team") const {
    return objects.at(job_path(name, space)).value("status", json::object());
  }
  std::string phase(std::string const& name, std::string const& space = "team") const {
    return status(name, space).value("phase", "");
  }
  int workers(std::string const& name, std::string const& space = "team") const {
    int n = 0;
    for (auto const& [path, o] : objects)
      n += path.starts_with(pod_path("elasticdl-" + name + "-worker-", space)) &&
           !o["metadata"].contains("deletionTimestamp") && !over(o);
    return n;
  }
  static bool over(json const& pod) {
    std::string const phase = pod.value("/status/phase"_json_pointer, "");
    return phase == "Succeeded" || phase == "Failed";
  }

 private:
  template <class Do>
  json asked(std::string const& verb, std::string const& path, Do const& what) {
    if (budget == 0) throw killed{};
    ++requests;
    if (refuse) refuse(verb, path);
    json const answer = what();
    if (budget > 0 && --budget == 0) throw killed{};
    return answer;
  }
  [[noreturn]] static void fail(int code, std::string const& reason, std::string const& message) {
    throw k8s::api_error(code, reason, message, message);
  }
  json const& find(std::string const& path) const {
    auto const at = objects.find(path);
    if (at == objects.end()) fail(404, "NotFound", path + " is not there");
    return at->second;
  }
  void put(std::string const& path, json o) {
    if (auto const at = objects.find(path); at != objects.end()) {
      json bare = o;
      bare["metadata"]["resourceVersion"] = at->second["metadata"]["resourceVersion"];
      if (bare == at->second) return;
    }
    o["metadata"]["resourceVersion"] = std::to_string(++version_);
    objects[path] = std::move(o);
  }
  json make(std::string const& path, json o) {
    std::string const at = path + "/" + o["metadata"]["name"].get<std::string>();
    if (objects.contains(at)) fail(409, "AlreadyExists", at + " is there already");
    o["metadata"]["uid"] = fmt::format("{:08}-uid", ++version_);
    o["metadata"]["creationTimestamp"] = edl::stamp_of(now);
    if (minor < 35 && o.contains("/spec/containers/0/restartPolicyRules"_json_pointer))
      fail(400, "BadRequest",
           "strict decoding error: unknown field \"spec.containers[0].restartPolicyRules\"");
    if (o.value("kind", "") == "Pod") {
      o["status"] = {{"phase", "Pending"}};
      if (at.ends_with("-master")) created.push_back(at);
    }
    put(at, o);
    return objects.at(at);
  }
  /// Removes what is to be removed and is held by nobody.
  void reap(std::string const& path) {
    auto const at = objects.find(path);
    if (at == objects.end() || !at->second["metadata"].contains("deletionTimestamp")) return;
    if (at->second["metadata"].value("deletionGracePeriodSeconds", 0) > 0) return;
    if (auto const& f = k8s::field(at->second, {"metadata", "finalizers"}); f.is_array() && !f.empty())
      return;
    objects.erase(at);
  }
  static void ends_by_signal(json& p) {
    p["status"]["phase"] = "Failed";
    p["status"]["containerStatuses"] = {
        {{"state", {{"terminated", {{"exitCode", 143}, {"reason", "Error"}}}}}}};
  }
  void place(std::string const& path, json p) {
    std::map<std::string, double> used;
    double const wants = cpu(p);
    for (auto const& [other, o] : objects)
      if (o.value("kind", "") == "Pod" && !over(o)) used[o["spec"].value("nodeName", "")] += cpu(o);
    for (auto const& [at, n] : objects) {
      if (!at.starts_with("/api/v1/nodes/")) continue;
      std::string const name = n["metadata"]["name"];
      json const has = n["metadata"].value("labels", json::object());
      json const wanted = p["spec"].value("nodeSelector", json::object());
      if (std::ranges::any_of(wanted.items(),
                              [&](auto const& one) { return has.value(one.key(), "") != one.value(); }))
        continue;
      if (used[name] + wants > std::stod(n["status"]["allocatable"]["cpu"].get<std::string>())) continue;
      p["spec"]["nodeName"] = name;
      p["status"].erase("conditions");
      return put(path, p);
    }
    p["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "0/1 nodes are available: 1 Insufficient cpu."}}};
    put(path, p);
  }
  static double cpu(json const& p) {
    auto const& c = k8s::first(k8s::field(p, {"spec", "containers"}));
    std::string const text = k8s::text(k8s::field(c, {"resources", "requests", "cpu"}));
    return text.empty() ? 0 : std::stod(text);
  }

  /// A master's next step.
  void act(std::string const& path) {
    json p = objects.at(path);
    if (p["status"].value("phase", "") != "Running" || p["metadata"].contains("deletionTimestamp")) return;
    if (!objects.contains("/api/v1/nodes/" + p["spec"].value("nodeName", ""))) return;
    std::string made;
    for (json const& e : p.value("/spec/containers/0/env"_json_pointer, json::array()))
      if (e["name"] == "EDL_JOB") made = e["value"];
    for (std::size_t at = 0; (at = made.find("$$", at)) != made.npos; ++at) made.erase(at, 1);
    if (made.empty()) return;  // no master of a TrainingJob
    k8s::job_spec const spec = k8s::job_from_json(made);
    json& notes = p["metadata"]["annotations"];
    std::string const space = p["metadata"]["namespace"], base = "elasticdl-" + spec.name;
    if (notes.contains(annotation::suspend)) {
      for (auto const& m : members(base, space)) erase(m);
      if (members(base, space).empty()) {
        p["status"]["phase"] = "Failed";
        p["status"]["containerStatuses"] = {
            {{"state", {{"terminated", {{"exitCode", edl::platform::suspended}, {"reason", "Error"}}}}}}};
        put(path, p);
      }
      return;
    }
    // One that takes another's place goes on with what it finds, and says its size only when it changes.
    auto const known = sizes_.find(p["metadata"]["uid"]);
    std::uint32_t size = spec.initial_workers;
    if (known != sizes_.end())
      size = known->second;
    else if (auto const found = members(base + "-worker-", space).size(); found > 0)
      size = std::uint32_t(found);
    std::vector<std::uint32_t> leave;
    if (notes.contains(annotation::num_workers)) {
      size = std::uint32_t(std::stoi(notes[annotation::num_workers].get<std::string>()));
      std::string const list = notes.value(annotation::leave, "");
      for (std::size_t at = 0; at < list.size(); ++at)
        if (at == 0 || list[at - 1] == ',') leave.push_back(std::uint32_t(std::stoi(list.substr(at))));
      notes.erase(annotation::num_workers);
      notes.erase(annotation::leave);
      notes["elasticdl/scaled"] = fmt::format("workers={}", size);
      notes["elasticdl/size"] = fmt::format("workers={},servers={}", size, spec.num_servers);
      put(path, p);
    }
    sizes_[p["metadata"]["uid"]] = size;
    std::vector<std::uint32_t> there;
    std::uint32_t next = 0;
    for (auto const& m : members(base + "-worker-", space)) {
      auto const id = std::uint32_t(std::stoi(m.substr(m.rfind('-') + 1)));
      next = std::max(next, id + 1);
      if (!objects.at(m)["metadata"].contains("deletionTimestamp") && !over(objects.at(m)))
        there.push_back(id);
    }
    auto const gone = [&](std::uint32_t id) {
      erase(pod_path(fmt::format("{}-worker-{}", base, id), space));
      std::erase(there, id);
    };
    for (std::uint32_t id : leave)
      if (there.size() > size && std::ranges::count(there, id) > 0) gone(id);
    std::ranges::sort(there);
    bool const moving = there.size() == size + 1 && !notes.value(annotation::pool, "").empty();
    while (there.size() > size + moving) gone(there.back());
    std::string const pool = notes.value(annotation::pool, "");
    // One moves at a time, and leaves when its successor runs.
    auto const elsewhere = [&](std::uint32_t id) {
      return !pool.empty() &&
             k8s::pool_of(objects.at(pod_path(fmt::format("{}-worker-{}", base, id), space))) != pool;
    };
    for (std::uint32_t id : std::vector(there)) {
      json const& m = objects.at(pod_path(fmt::format("{}-worker-{}", base, id), space));
      if (elsewhere(id) && m["spec"].value("nodeName", "").empty()) gone(id);
    }
    if (std::ranges::any_of(there, elsewhere)) {
      bool const all = std::ranges::all_of(there, [&](std::uint32_t id) {
        return objects.at(pod_path(fmt::format("{}-worker-{}", base, id), space))["status"]["phase"] ==
               "Running";
      });
      if (there.size() <= size)
        ++size;
      else if (all)
        gone(*std::ranges::find_if(there, elsewhere));
    }
    for (; there.size() < size; there.push_back(next++)) member(spec, {role::worker, next}, pool);
    for (std::uint32_t id = 0; id < spec.num_servers; ++id)
      if (!objects.contains(pod_path(fmt::format("{}-ps-{}", base, id), space)))
        member(spec, {role::server, id});
  }
  void member(k8s::job_spec const& spec, edl::process_id who, std::string const& pool = {}) {
    json p = k8s::member_pod(spec, who, who.id, {}, {}, spec.by);
    k8s::put_in_pool(p, pool);
    make(fmt::format("/api/v1/namespaces/{}/pods", spec.space), p);
  }
  std::vector<std::string> members(std::string const& base, std::string const& space) const {
    auto all = paths(pod_path(base, space));
    std::erase_if(all, [](std::string const& path) { return path.ends_with("-master"); });
    return all;
  }

  void collect() {
    std::vector<std::string> uids, orphans;
    for (auto const& [path, o] : objects) uids.push_back(o["metadata"].value("uid", ""));
    for (auto const& [path, o] : objects)
      for (json const& by : o["metadata"].value("ownerReferences", json::array()))
        if (std::ranges::count(uids, by["uid"].get<std::string>()) == 0) orphans.push_back(path);
    for (auto const& path : orphans)
      if (!objects.at(path)["metadata"].contains("deletionTimestamp")) erase(path);
  }

  std::uint64_t version_ = 100;
  std::map<std::string, std::uint32_t> sizes_{};  ///< of the master with this uid
};

/// A controller that looks at everything once.
class pass {
 public:
  explicit pass(plan_options o = {.max_load = 1, .move = false}) : control_(o) {}

  /// What is there now becomes known.
  void look(cluster const& c) {
    auto const list = [&](object_kind k, auto const& is) {
      control_.known().begin(k);
      for (auto const& [path, o] : c.objects)
        if (is(path)) control_.known().put(k, o);
      control_.known().end(k);
    };
    list(object_kind::node, [](auto& p) { return p.starts_with("/api/v1/nodes/"); });
    list(object_kind::pod, [](auto& p) { return p.find("/pods/") != p.npos; });
    list(object_kind::job, [](auto& p) { return p.find("/trainingjobs/") != p.npos; });
    list(object_kind::priority_class, [](auto&) { return false; });
  }

  /// Plans, and carries out what follows. Returns how many actions there were.
  int work(cluster& c) {
    look(c);
    auto const planned = make_plan(control_.view(c.now), control_.planning());
    control_.take(planned);
    again_at_ = planned.again_at.value_or(never);
    return act(c);
  }

  /// The same by the plan that was made last.
  int work_as_planned(cluster& c) {
    look(c);
    return act(c);
  }

  void take_prices(pool_prices prices) { control_.take(std::move(prices)); }

  /// When it wants to look again; seconds.
  double again_at() const { return again_at_; }

  std::vector<std::string> notes;  ///< all that were told

 private:
  int act(cluster& c) {
    int actions = 0;
    std::vector<std::string> keys;
    for (auto const& [key, e] : control_.known().jobs()) keys.push_back(key);
    for (auto const& path : c.paths("-master")) {
      auto const at = path.find("/pods/elasticdl-");
      if (at == path.npos) continue;
      std::string const name = path.substr(at + 16, path.size() - at - 16 - 7);
      keys.push_back(path.substr(19, at - 19) + "/" + name);
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (auto const& key : keys) {
      auto const t = control_.decide(key, c.now);
      actions += int(t.decision.actions.size());
      for (auto const& note : t.decision.notes) notes.push_back(note.reason + ": " + note.message);
      if (t.decision.again_at && *t.decision.again_at < again_at_) again_at_ = *t.decision.again_at;
      if (!t.decision.actions.empty()) control_.learn(t, execute(c, t.job, t.decision, options_), c.now);
    }
    return actions;
  }

  static constexpr double never = 1e18;
  double again_at_ = never;
  control control_;
  execute_options options_;
};

/// "True Reason" of a condition of a TrainingJob; empty where it has none of that type.
inline std::string says(cluster const& c, std::string const& type, std::string const& job = "a") {
  for (json const& one : c.status(job).value("conditions", json::array()))
    if (one["type"] == type) return one["status"].get<std::string>() + " " + one.value("reason", "");
  return "";
}

/// Rounds of a controller and the cluster, at most `most` of them. They go on until nothing happens any more
/// and the controller does not want to look again within 15 s. `check` is asked after each step of either.
inline void converge(cluster& c, pass& with, int most = 60, std::function<void()> const& check = {}) {
  for (int rounds = 0, quiet = 0; rounds < most && quiet < 3; ++rounds) {
    auto const before = c.objects;
    int const done = with.work(c);
    if (check) check();
    c.step();
    if (check) check();
    bool const waits = with.again_at() < c.now + 15;
    quiet = done == 0 && c.objects == before && !waits ? quiet + 1 : 0;
  }
}

}  // namespace world
