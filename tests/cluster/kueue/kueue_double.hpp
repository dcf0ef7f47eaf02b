// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "edl/cluster/kueue/kueue.hpp"
#include "edl/core/quantity.hpp"
#include "edl/core/wall_time.hpp"

/// Doubles of what stands on the other side of Workloads: the API server with Kueue's webhook, and Kueue's
/// scheduler. They are as small as they can be and refuse what the real ones refuse.
namespace edl::controller::kueue_double {

using nlohmann::json;

inline bool condition_true(json const& w, std::string const& type) {
  for (auto const& c : w.value("/status/conditions"_json_pointer, json::array()))
    if (c["type"] == type) return c["status"] == "True";
  return false;
}

inline void set_condition(json& w, std::string const& type, bool yes, std::string const& reason,
                          std::string const& message = "") {
  json& all = w["status"]["conditions"];
  if (!all.is_array()) all = json::array();
  json const next{{"type", type},
                  {"status", yes ? "True" : "False"},
                  {"reason", reason},
                  {"message", message},
                  {"lastTransitionTime", "2026-11-22T10:00:00Z"},
                  {"observedGeneration", w["metadata"].value("generation", 1)}};
  for (json& c : all)
    if (c["type"] == type) {
      c = next;
      return;
    }
  all.push_back(next);
}

struct refusal : std::runtime_error {
  int code;
  refusal(int c, std::string const& why) : std::runtime_error(why), code(c) {}
};

/// Workloads as an API server keeps them, with what Kueue's webhook checks.
class server {
 public:
  std::map<std::string, json> objects;  ///< by "namespace/name"
  json gone;                            ///< the one that went last, as the answer to that change shows it
  bool elastic_jobs = true;             ///< the feature gate: pod sets that have quota may shrink
  double now = 0;

  void apply(kueue::api_write const& r) {
    using verb = kueue::api_write::verb;
    std::string const key = r.space + "/" + r.name;
    json const body = json::parse(r.body);
    if (r.action == verb::create) return create(key, body);
    auto const at = objects.find(key);
    if (at == objects.end()) throw refusal(404, key + " not found");
    if (r.action == verb::remove) return remove(key, body);
    json next = at->second;
    if (r.action == verb::patch) {
      next = next.patch(body);
    } else {
      json change = body;
      if (change.contains("metadata")) {
        next["metadata"].merge_patch(change["metadata"]);
        change.erase("metadata");
      }
      next.merge_patch(change);
    }
    store(key, std::move(next));
  }

  /// As Kueue itself does: without looking at versions.
  void write(std::string const& key, json next) {
    next["metadata"]["resourceVersion"] = objects.at(key)["metadata"]["resourceVersion"];
    store(key, std::move(next));
  }

  /// Newer than all that has happened.
  std::string next_version() { return std::to_string(++version_); }

  std::vector<kueue::workload> read() const {
    std::vector<kueue::workload> all;
    for (auto const& [key, object] : objects)
      if (auto w = kueue::read_workload(object)) all.push_back(std::move(*w));
    return all;
  }

 private:
  void create(std::string const& key, json object) {
    if (objects.contains(key)) throw refusal(409, key + " already exists");
    json& meta = object["metadata"];
    meta["uid"] = "w" + std::to_string(++version_);
    meta["resourceVersion"] = std::to_string(version_);
    meta["generation"] = 1;
    meta["creationTimestamp"] = stamp_of(now);
    int least = 0;
    for (json& set : object["spec"]["podSets"]) {
      least += set.contains("minCount");
      // Defaults of the resource's schema.
      for (json& c : set["template"]["spec"]["containers"])
        if (c.contains("ports"))
          for (json& p : c["ports"]) p.emplace("protocol", "TCP");
    }
    if (least > 1) throw refusal(403, "at most one podSet can use minCount");
    if (object["spec"].contains("priorityClassRef") && !object["spec"].contains("priority"))
      throw refusal(422, "priority should not be nil when priorityClassRef is set");
    objects[key] = std::move(object);
  }

  void remove(std::string const& key, json const& how) {
    json& is = objects.at(key);
    for (char const* same : {"uid", "resourceVersion"})
      if (how["preconditions"][same] != is["metadata"][same]) throw refusal(409, key + " is another one");
    is["metadata"]["resourceVersion"] = std::to_string(++version_);
    is["metadata"]["deletionTimestamp"] = stamp_of(now);
    collect(key);
  }

  void collect(std::string const& key) {
    json const& meta = objects.at(key)["metadata"];
    if (!meta.contains("deletionTimestamp") || !meta.value("finalizers", json::array()).empty()) return;
    gone = objects.at(key);
    objects.erase(key);
  }

  void store(std::string const& key, json next) {
    json& is = objects.at(key);
    for (char const* same : {"uid", "resourceVersion"})
      if (next["metadata"][same] != is["metadata"][same]) throw refusal(409, key + " has been modified");
    bool const had = condition_true(is, "QuotaReserved"), has = condition_true(next, "QuotaReserved");
    if (had) check_sets(is["spec"]["podSets"], next["spec"]["podSets"]);
    if (had && has) check_reclaimable(is, next);
    json const none;
    json const before = is.value("/status/admission"_json_pointer, none),
               after = next.value("/status/admission"_json_pointer, none);
    if (!before.is_null() && !after.is_null() && before != after)
      throw refusal(403, "admission is immutable");
    if (next == is) return;
    if (next["spec"] != is["spec"])
      next["metadata"]["generation"] = is["metadata"]["generation"].get<int>() + 1;
    next["metadata"]["resourceVersion"] = std::to_string(++version_);
    is = std::move(next);
    collect(key);
  }

  void check_sets(json const& old, json next) const {
    if (old.size() != next.size()) throw refusal(403, "podSets are immutable");
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (elastic_jobs && next[i]["count"] < old[i]["count"]) next[i]["count"] = old[i]["count"];
      if (next[i] != old[i]) throw refusal(403, "podSets are immutable");
    }
  }

  static std::map<std::string, int> reclaimed(json const& w) {
    std::map<std::string, int> all;
    for (auto const& r : w.value("/status/reclaimablePods"_json_pointer, json::array()))
      all[r["name"]] = r["count"];
    return all;
  }
  static void check_reclaimable(json const& old, json const& next) {
    auto const now = reclaimed(next);
    for (auto const& [name, count] : reclaimed(old))
      if (!now.contains(name) || now.at(name) < count)
        throw refusal(403, "reclaimable pods cannot rise again");
  }

  int version_ = 0;
};

/// Kueue's scheduler: one ClusterQueue of cpu for each LocalQueue name, one flavor.
class scheduler {
 public:
  explicit scheduler(std::int64_t cpus) : quota(cpus * 1000) {}

  std::int64_t quota;  ///< thousandths of a cpu, of each queue
  bool stopped = false;
  bool checks = false;  ///< quota is reserved, and admission checks are pending
  std::string flavor = "spot";

  /// One round over all Workloads. The highest priority comes first, then the oldest.
  void step(server& on) {
    for (auto& [key, object] : std::map(on.objects)) look_after(on, key, object);
    std::vector<std::string> pending;
    for (auto const& [key, w] : on.objects)
      if (waits(w)) pending.push_back(key);
    std::stable_sort(pending.begin(), pending.end(),
                     [&](auto const& a, auto const& b) { return rank(on.objects[a]) < rank(on.objects[b]); });
    for (auto const& key : pending) try_to_admit(on, key);
  }

  void evict(server& on, std::string const& key, std::string const& reason) {
    json w = on.objects.at(key);
    set_condition(w, "Evicted", true, reason, "evicted by a test");
    on.write(key, std::move(w));
  }

  std::int64_t used(server const& on, std::string const& queue) const {
    std::int64_t sum = 0;
    for (auto const& [key, w] : on.objects)
      if (w["spec"]["queueName"] == queue) sum += held_by(w);
    return sum;
  }

  static std::int64_t cpu_of(json const& pods) {
    std::int64_t sum = 0;
    for (auto const& c : pods["spec"]["containers"])
      sum += thousandths_of(c.value("/resources/requests/cpu"_json_pointer, std::string("0")));
    return sum;
  }

  /// Quota that a Workload has: it counts until it is finished or gone, whatever else is said of it.
  static std::int64_t held_by(json const& object) {
    auto const w = kueue::read_workload(object);
    if (!w || w->finished() || !w->reserved()) return 0;
    std::int64_t sum = 0;
    for (auto const& s : object["spec"]["podSets"])
      sum += cpu_of(s["template"]) * w->granted(std::string(s["name"]));
    return sum;
  }

 private:
  static std::pair<std::int64_t, std::string> rank(json const& w) {
    return {-w["spec"].value("priority", std::int64_t{0}), w["metadata"]["creationTimestamp"]};
  }
  static std::string replaced_by(json const& w) {
    return w["metadata"]
        .value("annotations", json::object())
        .value(kueue::replaces_annotation, std::string());
  }
  static bool waits(json const& w) {
    if (condition_true(w, "Finished") || condition_true(w, "QuotaReserved")) return false;
    if (w["metadata"].contains("deletionTimestamp") || !w["spec"].value("active", true)) return false;
    for (auto const& c : w.value("/status/conditions"_json_pointer, json::array()))
      if (c["type"] == "Requeued") return c["status"] == "True";
    return true;
  }

  void look_after(server& on, std::string const& key, json w) {
    if (condition_true(w, "Finished")) return;
    bool const has = condition_true(w, "QuotaReserved"), active = w["spec"].value("active", true);
    if (has && !condition_true(w, "Evicted") && !active) return evict(on, key, "Deactivated");
    if (has && !condition_true(w, "Evicted") && stopped) return evict(on, key, "ClusterQueueStopped");
    if (has && !condition_true(w, "Admitted") && !condition_true(w, "Evicted") && !checks) {
      set_condition(w, "Admitted", true, "Admitted");
      return on.write(key, std::move(w));
    }
    for (auto const& c : w.value("/status/conditions"_json_pointer, json::array()))
      if (!has && c["type"] == "Requeued" && c["status"] == "False" && active && !stopped) {
        set_condition(w, "Requeued", true, "BackoffFinished");
        return on.write(key, std::move(w));
      }
  }

  void try_to_admit(server& on, std::string const& key) {
    if (stopped) return;
    json w = on.objects.at(key);
    std::string const queue = w["spec"]["queueName"], before = replaced_by(w);
    std::int64_t free = quota - used(on, queue);
    bool const slice = !before.empty() && on.objects.contains(before);
    if (slice) free += held_by(on.objects.at(before));
    std::int64_t fixed = 0, each = 0;
    std::uint32_t count = 0, least = 0;
    for (auto const& s : w["spec"]["podSets"]) {
      if (s["name"] != kueue::workers_set) {
        fixed += cpu_of(s["template"]) * s["count"].get<int>();
        continue;
      }
      each = cpu_of(s["template"]);
      count = s["count"];
      least = s.value("minCount", count);
    }
    while (count > least && fixed + each * count > free) --count;
    if (fixed + each * count > free) {
      set_condition(w, "QuotaReserved", false, "Pending", "insufficient quota for cpu in flavor " + flavor);
      on.write(key, w);
      return preempt(on, w, queue);
    }
    json assignments = json::array();
    for (auto const& s : w["spec"]["podSets"])
      assignments.push_back({{"name", s["name"]},
                             {"count", s["name"] == kueue::workers_set ? json(count) : s["count"]},
                             {"flavors", {{"cpu", flavor}}}});
    w["status"]["admission"] = {{"clusterQueue", queue}, {"podSetAssignments", assignments}};
    set_condition(w, "QuotaReserved", true, "QuotaReserved");
    set_condition(w, "Admitted", !checks, checks ? "UnsatisfiedChecks" : "Admitted");
    set_condition(w, "Evicted", false, "QuotaReserved");
    on.write(key, std::move(w));
    if (!slice) return;
    json old = on.objects.at(before);
    set_condition(old, "Finished", true, "WorkloadSliceReplaced");
    on.write(before, std::move(old));
  }

  void preempt(server& on, json const& by, std::string const& queue) {
    for (auto const& [key, w] : std::map(on.objects))
      if (w["spec"]["queueName"] == queue && held_by(w) > 0 && !condition_true(w, "Evicted") &&
          w["spec"].value("priority", 0) < by["spec"].value("priority", 0))
        return evict(on, key, "Preempted");
  }
};

}  // namespace edl::controller::kueue_double
