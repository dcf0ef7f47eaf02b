// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/kueue_objects.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::kueue {
namespace detail::objects {

using kubernetes::field;
using kubernetes::text;
using nlohmann::json;

inline constexpr std::size_t longest_message = 32768;

inline std::string dump(json const& v) { return v.dump(-1, ' ', false, json::error_handler_t::replace); }

inline json parsed(kubernetes::template_text const& pods) {
  json const t = json::parse(pods, nullptr, false);
  // A Workload accepts only labels and annotations of a template's metadata.
  json out{{"spec", field(t, {"spec"})}};
  for (char const* key : {"labels", "annotations"})
    if (auto const& v = field(t, {"metadata", key}); v.is_object() && !v.empty()) out["metadata"][key] = v;
  return out;
}

inline json sets_json(std::vector<pod_set> const& sets) {
  json all = json::array();
  for (pod_set const& s : sets) {
    json one{{"name", s.name}, {"count", s.count}, {"template", parsed(s.pods)}};
    if (s.min_count) one["minCount"] = *s.min_count;
    all.push_back(std::move(one));
  }
  return all;
}

inline json priority_ref(priority_choice const& p) {
  return {{"group", p.of_kueue ? "kueue.x-k8s.io" : "scheduling.k8s.io"},
          {"kind", p.of_kueue ? "WorkloadPriorityClass" : "PriorityClass"},
          {"name", p.name}};
}

inline json condition_json(kubernetes::condition const& c) {
  json out{{"type", c.type},
           {"status", c.status == kubernetes::truth::yes  ? "True"
                      : c.status == kubernetes::truth::no ? "False"
                                                          : "Unknown"},
           {"reason", c.reason},
           {"message", printable(c.message, longest_message)},
           {"lastTransitionTime", c.last_transition_time}};
  if (c.observed_generation > 0) out["observedGeneration"] = c.observed_generation;
  return out;
}

inline void put(std::vector<kubernetes::condition>& all, kubernetes::condition next) {
  auto const at = std::find_if(all.begin(), all.end(),
                               [&](kubernetes::condition const& c) { return c.type == next.type; });
  if (at == all.end()) return all.push_back(std::move(next));
  if (at->status == next.status) next.last_transition_time = at->last_transition_time;
  *at = std::move(next);
}

inline json list(std::vector<kubernetes::condition> const& all) {
  json out = json::array();
  for (kubernetes::condition const& c : all) out.push_back(condition_json(c));
  return out;
}

inline api_write status_patch(workload const& w, json status, std::string why) {
  json const body{{"metadata", {{"resourceVersion", w.resource_version}, {"uid", w.uid}}},
                  {"status", std::move(status)}};
  return {api_write::verb::patch_status, w.space, w.name, dump(body), std::move(why)};
}

/// Starts a patch with tests that make the server refuse it (409) if the object has changed since.
inline json guarded(workload const& w) {
  json all = json::array();
  all.push_back({{"op", "replace"}, {"path", "/metadata/uid"}, {"value", w.uid}});
  all.push_back({{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", w.resource_version}});
  return all;
}

inline std::string base_name(kubernetes::training_job const& job) {
  return fmt::format("tj-{}-{}", job.name, job.uid.substr(0, 8));
}

}  // namespace detail::objects

EDL_INLINE std::string queue_of(kubernetes::training_job const& job) {
  auto const at = job.labels.find(queue_label);
  return at == job.labels.end() ? std::string() : at->second;
}

EDL_INLINE bool elastic(kubernetes::training_job const& job) {
  auto const at = job.annotations.find(elastic_annotation);
  return at != job.annotations.end() && at->second == "true";
}

EDL_INLINE std::string workload_name(kubernetes::training_job const& job, std::uint32_t n) {
  std::string const base = detail::objects::base_name(job);
  return n <= 1 ? base : fmt::format("{}-{}", base, n);
}

EDL_INLINE std::uint32_t workload_number(kubernetes::training_job const& job, std::string const& name) {
  std::string const base = detail::objects::base_name(job);
  if (name == base) return 1;
  if (!name.starts_with(base + "-")) return 0;
  return kubernetes::number(name.substr(base.size() + 1)).value_or(0);
}

EDL_INLINE priority_choice requested_priority(kubernetes::training_job const& job) {
  using namespace detail::objects;
  if (auto const at = job.labels.find(priority_label); at != job.labels.end() && !at->second.empty())
    return {at->second, true};
  for (kubernetes::template_text const* t : {&job.spec.worker, &job.spec.server, &job.spec.master})
    if (std::string name = text(field(json::parse(*t, nullptr, false), {"spec", "priorityClassName"}));
        !name.empty())
      return {std::move(name)};
  return {};
}

EDL_INLINE std::vector<pod_set> pod_sets_of(kubernetes::training_job const& job, worker_ask ask) {
  std::vector<pod_set> all{{.name = master_set, .pods = job.spec.master}};
  if (job.spec.servers > 0)
    all.push_back({.name = servers_set, .count = job.spec.servers, .pods = job.spec.server});
  if (ask.least && *ask.least >= ask.count) ask.least.reset();
  all.push_back({workers_set, ask.count, ask.least, job.spec.worker});
  return all;
}

EDL_INLINE api_write create(kubernetes::training_job const& job, std::uint32_t n, worker_ask ask,
                            priority_choice const& priority, workload const* replaces) {
  using namespace detail::objects;
  std::string const name = workload_name(job, n);
  json meta{{"name", name},
            {"namespace", job.space},
            {"labels", {{job_uid_label, job.uid}}},
            {"finalizers", json::array({in_use_finalizer})}};
  meta["ownerReferences"].push_back({{"apiVersion", kubernetes::api_version},
                                     {"kind", kubernetes::training_job_kind},
                                     {"name", job.name},
                                     {"uid", job.uid},
                                     {"controller", true}});
  if (elastic(job)) meta["annotations"][elastic_annotation] = "true";
  if (replaces) meta["annotations"][replaces_annotation] = replaces->space + "/" + replaces->name;
  json spec{{"queueName", queue_of(job)},
            {"podSets", sets_json(pod_sets_of(job, ask))},
            {"priority", priority.value},
            {"active", true}};
  if (!priority.name.empty()) spec["priorityClassRef"] = priority_ref(priority);
  json const object{{"apiVersion", api_version}, {"kind", "Workload"}, {"metadata", meta}, {"spec", spec}};
  return {api_write::verb::create, job.space, name, dump(object),
          replaces ? fmt::format("Workload {} requests {}.", name, counted(ask.count, "worker"))
                   : fmt::format("Workload {} waits in queue {}.", name, queue_of(job))};
}

EDL_INLINE api_write rewrite(workload const& w, kubernetes::training_job const& job, worker_ask ask,
                             priority_choice const& priority) {
  using namespace detail::objects;
  json body = guarded(w);
  auto const set = [&](char const* path, json value) {
    body.push_back({{"op", "add"}, {"path", path}, {"value", std::move(value)}});  // or replaces it
  };
  set("/spec/queueName", queue_of(job));
  set("/spec/podSets", sets_json(pod_sets_of(job, ask)));
  set("/spec/priority", priority.value);
  if (!priority.name.empty())
    set("/spec/priorityClassRef", priority_ref(priority));
  else if (!w.priority_class.empty())
    body.push_back({{"op", "remove"}, {"path", "/spec/priorityClassRef"}});
  return {api_write::verb::patch, w.space, w.name, dump(body),
          fmt::format("Workload {} requests the quota of the changed job.", w.name)};
}

EDL_INLINE api_write resize(workload const& w, std::string_view named, std::uint32_t count) {
  using namespace detail::objects;
  json body = guarded(w);
  for (std::size_t i = 0; i < w.pod_sets.size(); ++i)
    if (w.pod_sets[i].name == named)
      body.push_back(
          {{"op", "replace"}, {"path", fmt::format("/spec/podSets/{}/count", i)}, {"value", count}});
  return {api_write::verb::patch, w.space, w.name, dump(body),
          fmt::format("Workload {} requests {} {}.", w.name, count, named)};
}

EDL_INLINE bool describes(workload const& w, kubernetes::training_job const& job) {
  using namespace detail::objects;
  auto const wanted = pod_sets_of(job, {});
  if (wanted.size() != w.pod_sets.size()) return false;
  for (pod_set const& s : wanted) {
    pod_set const* const is = w.set(s.name);
    if (!is || (s.name != workers_set && is->count != s.count)) return false;
    if (!covers(json::parse(is->pods, nullptr, false), parsed(s.pods))) return false;
  }
  return true;
}

EDL_INLINE api_write give_back(workload const& w, std::string const& now) {
  using namespace detail::objects;
  kubernetes::condition const* const evicted = w.find("Evicted");
  std::string const reason = evicted ? evicted->reason : "Pending",
                    message = evicted ? evicted->message : "The job has no pods.";
  // After other evictions (Deactivated, a stopped queue, a timeout), Kueue decides when to requeue.
  bool const again = reason == "Preempted" || reason == "AdmissionCheck" || reason == "NodeFailures";
  auto all = w.conditions;
  auto const set = [&](char const* type, bool yes, std::string why, std::string words) {
    put(all, {type, yes ? kubernetes::truth::yes : kubernetes::truth::no, std::move(why), std::move(words),
              now, w.generation});
  };
  set("Requeued", again, reason, message);
  set("QuotaReserved", false, "Pending", message);
  set("Admitted", false, "NoReservation", "The workload has no reservation");
  if (w.find("PodsReady")) set("PodsReady", false, "WaitForStart", "The job has no pods.");
  return status_patch(w, {{"conditions", list(all)}, {"admission", nullptr}, {"reclaimablePods", nullptr}},
                      fmt::format("Workload {} returns its quota: the last pod is gone.", w.name));
}

EDL_INLINE api_write set_condition(workload const& w, std::string type, bool yes, std::string reason,
                                   std::string message, std::string const& now) {
  using namespace detail::objects;
  auto all = w.conditions;
  std::string why = type == "Finished" ? fmt::format("Workload {} is finished: {}", w.name, message) : "";
  put(all, {std::move(type), yes ? kubernetes::truth::yes : kubernetes::truth::no, std::move(reason),
            std::move(message), now, w.generation});
  return status_patch(w, {{"conditions", list(all)}}, std::move(why));
}

EDL_INLINE api_write reclaim(workload const& w, std::string_view named, std::uint32_t count) {
  using namespace detail::objects;
  auto all = w.reclaimable;
  all[std::string(named)] = count;
  json out = json::array();
  for (auto const& [name, n] : all) out.push_back({{"name", name}, {"count", n}});
  return status_patch(w, {{"reclaimablePods", out}},
                      fmt::format("Workload {} returns the quota of {} {}.", w.name, count, named));
}

EDL_INLINE api_write release(workload const& w) {
  using namespace detail::objects;
  json body = guarded(w);
  body.push_back({{"op", "remove"}, {"path", fmt::format("/metadata/finalizers/{}", w.held.value_or(0))}});
  return {api_write::verb::patch, w.space, w.name, dump(body)};
}

EDL_INLINE api_write remove(workload const& w, std::string why) {
  using namespace detail::objects;
  json const body{{"preconditions", {{"uid", w.uid}, {"resourceVersion", w.resource_version}}},
                  {"propagationPolicy", "Background"}};
  return {api_write::verb::remove, w.space, w.name, dump(body),
          why.empty() ? why : fmt::format("Workload {} is deleted: {}", w.name, why)};
}

}  // namespace edl::kueue
