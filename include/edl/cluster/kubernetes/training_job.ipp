// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/names.hpp"
#include "edl/cluster/kubernetes/object_reader.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::kubernetes {
namespace detail::job_reading {

inline constexpr std::size_t longest_template = 100 << 10, longest_text = 4096, longest_name = 253,
                             most_flags = 100, most_pools = most_sighted_pools;
inline constexpr double most_usd = 1e6;
inline constexpr std::int64_t most_servers = 1000, most_workers = 10'000, most_backoff = 1000,
                              most_seconds = 1'000'000'000, most_generation = std::int64_t{1} << 62;

inline void one_of(object_reader const& from, char const* name, std::string const& value,
                   std::initializer_list<std::string_view> values) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    from.fail(name, fmt::format("is '{}': expected {}", printable(value, 80), fmt::join(values, ", ")));
}

inline template_text read_template(object_reader const& role) {
  auto const* const given = role.find("template");
  if (!given) return {};
  object_reader const pod = role.object("template").object("spec");
  if (pod.objects("containers", 100).empty())
    pod.fail("containers", "is missing: name at least one container, with an image that holds the program");
  template_text text = given->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > longest_template)
    role.fail("template",
              fmt::format("takes {} bytes: expected at most {}; keep files in a volume, not in it",
                          text.size(), longest_template));
  return text;
}

inline template_text needed_template(object_reader const& role) {
  template_text text = read_template(role);
  if (text.empty()) role.fail("template", "is missing: give a pod template (metadata, spec) with an image");
  return text;
}

inline worker_range read_workers(object_reader const& from) {
  worker_range w;
  w.min = std::uint32_t(from.number("min", 1, most_workers));
  w.max = std::uint32_t(from.number("max", 1, most_workers));
  if (w.min > w.max)
    from.fail("min", fmt::format("is {}: expected at most spec.workers.max, which is {}", w.min, w.max));
  if (from.has("replicas")) w.replicas = std::uint32_t(from.number("replicas", w.min, w.max));
  return w;
}

inline node_pool read_pool(object_reader const& from, std::string name,
                           std::map<std::string, std::string> const& own) {
  node_pool p{.name = std::move(name)};
  from.take("nodeSelector", p.labels);
  if (p.labels.empty())
    from.fail("nodeSelector", "is missing: name the labels that the pool's nodes have, and no others");
  for (auto const& [key, value] : p.labels)
    if (auto const other = own.find(key); other != own.end() && other->second != value)
      from.fail("nodeSelector", fmt::format("has {}={}, but spec.workers.template has {}={}", key, value, key,
                                            other->second));
  if (!from.has("usdPerHour")) from.fail("usdPerHour", "is missing: give the price of one worker's machine");
  p.usd_per_hour = from.fraction("usdPerHour");
  if (p.usd_per_hour > most_usd)
    from.fail("usdPerHour", fmt::format("is {}: expected at most {}", p.usd_per_hour, most_usd));
  return p;
}

inline spot_spec read_spot(object_reader const& from, object_reader const& workers) {
  spot_spec s;
  std::map<std::string, std::string> own;
  workers.object("template").object("spec").take("nodeSelector", own);
  std::string until;
  from.take("deadline", until);
  if (auto const at = edl::seconds_of(until); at && *at > 0)
    s.deadline = *at;
  else
    from.fail("deadline", fmt::format("is '{}': expected a time in UTC, such as 2026-12-24T18:00:00Z",
                                      printable(until, 80)));
  if (from.has("budgetUsd")) s.budget = from.fraction("budgetUsd");
  s.on_demand = read_pool(from.object("onDemand"), std::string(on_demand_pool), own);
  for (object_reader const& one : from.objects("pools", most_pools)) {
    std::string name;
    one.take("name", name, longest_name);
    if (!is_label(name) || name == on_demand_pool || name == no_pool)
      one.fail("name", fmt::format("is '{}': expected lower case letters, digits and '-' inside, and neither "
                                   "{} nor {}",
                                   printable(name, 80), on_demand_pool, no_pool));
    s.pools.push_back(read_pool(one, std::move(name), own));
    if (s.pools.back().labels == s.on_demand.labels)
      one.fail("nodeSelector", "is that of onDemand: the prices differ, so must the nodes");
    for (std::size_t i = 0; i + 1 < s.pools.size(); ++i) {
      if (s.pools[i].name == s.pools.back().name) one.fail("name", "occurs twice");
      if (s.pools[i].labels == s.pools.back().labels)
        one.fail("nodeSelector", fmt::format("is that of pool {}", s.pools[i].name));
    }
  }
  if (s.pools.empty()) from.fail("pools", "is empty: name at least one pool of nodes");
  return s;
}

inline training_job_spec read_spec(object_reader const& from) {
  training_job_spec s;
  from.take("suspend", s.suspend);
  from.take("managedBy", s.managed_by, longest_name);
  from.take("command", s.command);
  one_of(from, "command", s.command, {"train", "evaluate", "predict"});
  from.take("model", s.model, longest_name);
  if (s.model.empty()) from.fail("model", "is missing: name the program of the image that is the model");
  from.take("flags", s.flags, most_flags, longest_text);
  from.take("changingBatch", s.changing_batch);
  s.master = needed_template(from.object("master"));
  object_reader const servers = from.object("servers"), workers = from.object("workers");
  servers.take_number("replicas", s.servers, 0, most_servers);
  s.server = s.servers > 0 ? needed_template(servers) : read_template(servers);
  s.workers = read_workers(workers);
  s.worker = needed_template(workers);
  from.take("strategy", s.strategy);
  if (s.strategy.empty()) s.strategy = s.servers > 0 ? "ParameterServerStrategy" : "AllreduceStrategy";
  one_of(from, "strategy", s.strategy, {"ParameterServerStrategy", "AllreduceStrategy", "Local"});
  if (bool const wants = s.strategy == "ParameterServerStrategy"; wants != (s.servers > 0))
    servers.fail("replicas", fmt::format("is {}: {} {}", s.servers, s.strategy,
                                         wants ? "needs a server at least" : "has no servers"));
  if (s.strategy == "Local" && s.workers.max != 1)
    workers.fail("max", fmt::format("is {}: Local is a job of one worker", s.workers.max));
  if (s.strategy == "Local") s.strategy = "AllreduceStrategy";
  for (auto const& [name, into, least] : {std::tuple{"activeDeadlineSeconds", &s.active_deadline_seconds, 1},
                                          {"ttlSecondsAfterFinished", &s.ttl_seconds_after_finished, 0}})
    if (from.has(name)) *into = std::uint64_t(from.number(name, least, most_seconds));
  from.take_number("backoffLimit", s.backoff_limit, 0, most_backoff);
  if (from.has("spot")) s.spot = read_spot(from.object("spot"), workers);
  return s;
}

}  // namespace detail::job_reading

EDL_INLINE std::string title(training_job const& job) { return job.space + "/" + job.name; }

EDL_INLINE training_job read_training_job(nlohmann::json const& object) {
  using namespace detail::job_reading;
  training_job j;
  object_reader const unnamed(object_reader(object, "a TrainingJob", "").object("metadata"));
  unnamed.take("name", j.name, longest_name);
  unnamed.take("namespace", j.space, longest_name);
  std::string const whose = printable(title(j), 2 * longest_name);
  object_reader const whole(object, whose, ""), meta = whole.object("metadata");
  std::string kind;
  whole.take("kind", kind);
  if (!kind.empty() && kind != training_job_kind)
    whole.fail("kind", fmt::format("is '{}': expected {}", printable(kind, 80), training_job_kind));
  if (!is_label(j.name) || j.name.size() > longest_job_name)
    meta.fail("name", fmt::format("is '{}': expected at most {} lower case letters, digits and '-' inside",
                                  printable(j.name, 80), longest_job_name));
  if (!is_label(j.space))
    meta.fail("namespace", fmt::format("is '{}': expected a namespace's name", printable(j.space, 80)));
  meta.take("uid", j.uid, longest_name);
  meta.take("resourceVersion", j.resource_version, longest_name);
  meta.take_number("generation", j.generation, 0, most_generation);
  meta.take("creationTimestamp", j.created, longest_name);
  meta.take("deletionTimestamp", j.deleted, longest_name);
  meta.take("finalizers", j.finalizers, 100, longest_name);
  meta.take("labels", j.labels);
  meta.take("annotations", j.annotations);
  j.annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
  j.spec = read_spec(whole.object("spec"));
  if (auto const* const status = whole.find("status")) j.status = read_status(*status, whose);
  return j;
}

}  // namespace edl::kubernetes
