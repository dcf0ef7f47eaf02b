// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "edl/cluster/controller/job_objects.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/cluster/kubernetes/pod_template.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
namespace detail {

/// Renames flags to fields: a job's checks name flags of `edl train`, which a TrainingJob does not have.
inline std::string in_fields(std::string text) {
  auto const say = [&](std::string const& flag, std::string const& field) {
    for (auto at = text.find(flag); at != text.npos; at = text.find(flag, at + field.size()))
      text.replace(at, flag.size(), field);
  };
  for (auto const& [flag, set] :
       {std::pair{"--master", "master"}, {"--ps", "servers"}, {"--worker", "workers"}})
    for (auto const& [part, field] : {std::pair{"_resource_limit", "resources.limits"},
                                      {"_resource_request", "resources.requests"},
                                      {"_pod_priority", "priorityClassName"},
                                      {"_image", "image"}})
      say(std::string(flag) + part, fmt::format("spec.{}.template's {}", set, field));
  say("--image_name", "spec.master.template's image");
  return text;
}

}  // namespace detail

EDL_INLINE kubernetes::job_spec spec_of(kubernetes::training_job const& job, std::uint32_t workers) try {
  namespace k8s = kubernetes;
  kubernetes::training_job_spec const& of = job.spec;
  k8s::job_spec s;
  s.name = job.name;
  s.space = job.space;
  s.num_workers = of.workers.max;
  s.num_servers = of.servers;
  s.initial_workers = workers;
  s.command = {of.model, of.command, "--job_name=" + job.name};
  s.command.push_back("--distribution_strategy=" + of.strategy);
  s.command.push_back(fmt::format("--num_workers={}", of.workers.max));
  if (of.servers > 0) s.command.push_back(fmt::format("--num_ps_pods={}", of.servers));
  s.command.insert(s.command.end(), of.flags.begin(), of.flags.end());
  k8s::check_pod_template("spec.master.template", of.master);
  k8s::check_pod_template("spec.servers.template", of.server);
  k8s::check_pod_template("spec.workers.template", of.worker);
  s.server_template = of.server;
  s.worker_template = of.worker;
  auto const image = [](std::string const& text) {
    return nlohmann::json::parse(text)["spec"]["containers"][0]["image"].get<std::string>();
  };
  s.image = image(of.master);
  s.worker_image = image(of.worker);
  s.master = k8s::role_of_template(of.master);
  if (!of.server.empty()) s.server = k8s::role_of_template(of.server);
  s.worker = k8s::role_of_template(of.worker);
  s.service_account = usual_account;
  s.by = {.name = job.name,
          .uid = job.uid,
          .api_version = std::string(kubernetes::api_version),
          .kind = std::string(kubernetes::training_job_kind)};
  s.secret = k8s::secret_name(s.by);
  k8s::check(s);
  return s;
} catch (usage_error const& bad) {
  throw usage_error(detail::in_fields(bad.what()));
}

EDL_INLINE kubernetes::training_job placed(kubernetes::training_job job,
                                           std::map<std::string, kueue::pod_changes> const& changes) {
  for (auto const& [set, text] : {std::pair{kueue::master_set, &job.spec.master},
                                  {kueue::servers_set, &job.spec.server},
                                  {kueue::workers_set, &job.spec.worker}})
    if (auto const more = changes.find(set); more != changes.end()) {
      auto next = kueue::with_changes(*text, more->second);
      if (!next.conflict.empty())
        throw usage_error(
            fmt::format("spec.{}.template contradicts the assignment of Kueue: {}", set, next.conflict));
      *text = std::move(next.text);
    }
  return job;
}

EDL_INLINE nlohmann::json master_of(kubernetes::training_job const& job, create_master const& how,
                                    bool restart_rules) {
  auto pod = kubernetes::master_pod(spec_of(job, how.workers), nlohmann::json::parse(job.spec.master),
                                    restart_rules);
  nlohmann::json& meta = pod["metadata"];
  meta["annotations"][attempt_annotation] = std::to_string(how.attempt);
  meta["annotations"][restart_annotation] = std::to_string(how.restart);
  meta["annotations"][first_size_annotation] = std::to_string(how.workers);
  if (!how.pool.empty()) meta["annotations"][annotation::pool] = how.pool;
  meta["annotations"][annotation::least] = std::to_string(job.spec.workers.min);
  meta["finalizers"] = nlohmann::json::array({recorded_finalizer});
  return pod;
}

EDL_INLINE nlohmann::json event_of(kubernetes::training_job const& job, job_event const& what, double now,
                                   std::string const& id) {
  std::string const at = stamp_of(now);
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", fmt::format("{}.{}", job.name, id)}, {"namespace", job.space}}},
          {"involvedObject",
           {{"apiVersion", kubernetes::api_version},
            {"kind", kubernetes::training_job_kind},
            {"name", job.name},
            {"namespace", job.space},
            {"uid", job.uid}}},
          {"reason", what.reason},
          {"message", printable(what.message, 1024)},
          {"type", what.warning ? "Warning" : "Normal"},
          {"source", {{"component", "edl-controller"}}},
          {"reportingComponent", "elasticdl.org/edl-controller"},
          {"firstTimestamp", at},
          {"lastTimestamp", at},
          {"count", 1}};
}

EDL_INLINE std::string path_of(kubernetes::training_job const& job) {
  return fmt::format("/apis/{}/namespaces/{}/{}/{}", kubernetes::api_version, job.space,
                     kubernetes::training_job_plural, job.name);
}

EDL_INLINE std::string core_path(std::string const& space, std::string const& plural,
                                 std::string const& name) {
  return fmt::format("/api/v1/namespaces/{}/{}{}{}", space, plural, name.empty() ? "" : "/", name);
}

}  // namespace edl::controller
