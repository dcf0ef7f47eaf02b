// SPDX-License-Identifier: Apache-2.0
#include "submit/training_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/fields.hpp"
#include "edl/cluster/kubernetes/cluster_spec.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/submission_flags.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace k8s = kubernetes;

/// The server reads $(NAME) as a reference and $$ as $; everything here is meant as it stands.
std::string verbatim(std::string const& text) {
  std::string out;
  for (char const c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

/// The class of all workers; a share of them cannot be of another one.
std::string worker_class(k8s::job_spec const& j) {
  std::string const first = k8s::worker_priority(j.worker.priority, 0, j.num_workers);
  for (std::uint32_t id = 1; id < j.num_workers; ++id)
    if (k8s::worker_priority(j.worker.priority, id, j.num_workers) != first)
      throw usage_error(
          fmt::format("--worker_pod_priority={}: all workers of a TrainingJob have one class: name it",
                      j.worker.priority));
  return first;
}

/// The pods of a role, without what the controller adds to each.
json template_of(k8s::job_spec const& j, role what) {
  bool const master = what == role::master;
  k8s::role_spec const& r = master ? j.master : what == role::server ? j.server : j.worker;
  json container{{"name", master                 ? "master"
                          : what == role::server ? "ps"
                                                 : "worker"},
                 {"image", master || j.worker_image.empty() ? j.image : j.worker_image},
                 {"imagePullPolicy", j.image_pull_policy}};
  if (!r.request.empty()) container["resources"]["requests"] = r.request;
  if (auto const most = k8s::limit_of(r.request, r.limit); !most.empty())
    container["resources"]["limits"] = most;
  for (auto const& [name, value] : j.variables)
    container["env"].push_back({{"name", name}, {"value", verbatim(value)}});
  json spec = json::object();
  std::map<std::string, std::string> names;  // of volumes, by what they are
  for (k8s::volume const& v : j.volumes) {
    auto const [it, is_new] = names.try_emplace(v.claim_name + "\n" + v.host_path + "\n" + v.type,
                                                fmt::format("data-{}", names.size()));
    if (is_new && !v.claim_name.empty())
      spec["volumes"].push_back(
          {{"name", it->second}, {"persistentVolumeClaim", {{"claimName", v.claim_name}}}});
    else if (is_new) {
      spec["volumes"].push_back({{"name", it->second}, {"hostPath", {{"path", v.host_path}}}});
      if (!v.type.empty()) spec["volumes"].back()["hostPath"]["type"] = v.type;
    }
    json mount{{"name", it->second}, {"mountPath", v.mount_path}};
    if (!v.sub_path.empty()) mount["subPath"] = v.sub_path;
    if (v.read_only) mount["readOnly"] = true;
    container["volumeMounts"].push_back(std::move(mount));
  }
  spec["containers"] = json::array({std::move(container)});
  for (std::string const& secret : j.image_pull_secrets)
    spec["imagePullSecrets"].push_back({{"name", secret}});
  std::string const priority = what == role::worker ? worker_class(j) : r.priority;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  if (master && !j.service_account.empty()) spec["serviceAccountName"] = j.service_account;
  if (j.grace_seconds != k8s::job_spec{}.grace_seconds)
    spec["terminationGracePeriodSeconds"] = j.grace_seconds;
  if (!master && j.restart_policy != "Never") spec["restartPolicy"] = j.restart_policy;
  json out{{"spec", std::move(spec)}};
  k8s::customise_pod(out, j.cluster_spec, what);
  return out;
}

std::string value_of(words const& command, std::string const& flag) {
  for (std::string const& word : command)
    if (word.starts_with("--" + flag + "=")) return word.substr(flag.size() + 3);
  return {};
}

std::optional<std::int64_t> optional_number(command_line const& l, std::string const& name) {
  return l.given(name) ? std::optional(l.number(name)) : std::nullopt;
}

/// The numbers of workers, from --num_workers, --min_workers and --max_workers.
void read_bounds(command_line const& l, training_job_options& o) {
  bool const one = l.text("distribution_strategy") == "Local";
  if (l.given("num_workers") && l.text("num_workers") != "auto")
    o.workers = std::uint32_t(l.number("num_workers"));
  o.min = std::uint32_t(l.given("min_workers") ? l.number("min_workers") : 1);
  o.max = std::uint32_t(l.given("max_workers") ? l.number("max_workers")
                        : o.workers            ? std::max(*o.workers, o.min)
                        : one                  ? 1
                                               : std::max(2u, o.min));
  if (one && (o.min != 1 || o.max != 1))
    throw usage_error(
        "--distribution_strategy=Local has one worker: leave --min_workers and --max_workers out");
  if (o.min > o.max)
    throw usage_error(fmt::format("--min_workers={} is above --max_workers={}", o.min, o.max));
  if (o.workers && (*o.workers < o.min || *o.workers > o.max))
    throw usage_error(
        fmt::format("--num_workers={}: expected a number from --min_workers={} to --max_workers={}",
                    *o.workers, o.min, o.max));
}

}  // namespace

std::vector<flag> training_job_flags() {
  return {
      {.name = "min_workers",
       .fallback = "1",
       .help = "workers that the job starts with at least, and keeps",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 10000},
      {.name = "max_workers",
       .help = "workers that the autoscaler may give it at most; without it --num_workers, or 2",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 10000},
      {.name = "changing_batch",
       .fallback = "false",
       .help = "the job trains as well with another global batch, so that the autoscaler may change it",
       .type = flag::value_type::truth},
      {.name = "suspend",
       .fallback = "false",
       .help = "make the job, and start it with `edl resume` only",
       .type = flag::value_type::truth},
      {.name = "active_deadline_seconds",
       .help = "seconds after which a job that runs has failed",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 1000000000},
      {.name = "ttl_seconds_after_finished",
       .help = "seconds after which a job that has ended is deleted",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 1000000000},
      {.name = "backoff_limit",
       .fallback = "3",
       .help = "attempts that may fail before the job has failed",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 1000},
  };
}

std::vector<flag> training_job_flags(std::string const& command) {
  auto all = submission_flags(command);
  for (flag& f : all)
    if (f.name == "num_workers") f.choices = {"auto"};
  auto const own = training_job_flags();
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

training_job_line read_training_job_line(std::string const& command, words const& line,
                                         std::string const& stamp) {
  command_line const l = read_with_file(command, training_job_flags(command), line);
  training_job_options o;
  read_bounds(l, o);
  o.suspended = l.truth("suspend");
  o.changing_batch = l.truth("changing_batch");
  o.deadline = optional_number(l, "active_deadline_seconds");
  o.ttl = optional_number(l, "ttl_seconds_after_finished");
  o.backoff_limit = optional_number(l, "backoff_limit");
  std::set<std::string> aside{"file", "num_workers"};
  for (flag const& f : training_job_flags()) aside.insert(f.name);
  words plain;
  for (auto const& [name, value] : l.in_order())
    if (!aside.contains(name)) plain.push_back("--" + name + "=" + value);
  plain.push_back(fmt::format("--num_workers={}", o.max));
  return {read_submission(command, plain, stamp), std::move(o)};
}

json training_job_of(submission const& s, training_job_options const& o) {
  k8s::job_spec const& j = s.spec;
  if (!j.relaunch)
    throw usage_error(
        "--aux_params=disable_relaunch=True: lost pods of a TrainingJob are replaced: leave it out");
  if (!j.cluster_spec.empty() && json::parse(j.cluster_spec).contains("service_spec"))
    throw usage_error("--cluster_spec: service_spec: a TrainingJob has no place for it: leave it out");
  if (!j.populate_env_names.empty())
    throw usage_error("--populate_env_names: a TrainingJob's templates name the variables: give --envs");
  json metadata{{"name", j.name}};
  if (s.line.given("namespace") && !s.line.text("namespace").empty())
    metadata["namespace"] = s.line.text("namespace");
  if (!o.labels.empty()) metadata["labels"] = o.labels;
  if (!o.annotations.empty()) metadata["annotations"] = o.annotations;

  json workers{{"min", o.min}, {"max", o.max}, {"template", template_of(j, role::worker)}};
  if (o.workers) workers["replicas"] = *o.workers;
  json servers{{"replicas", j.num_servers}};
  if (j.num_servers > 0) servers["template"] = template_of(j, role::server);
  json flags = json::array();
  static std::set<std::string> const own_flags{"--job_name", "--distribution_strategy", "--num_workers",
                                               "--num_ps_pods"};
  for (std::size_t i = 2; i < j.command.size(); ++i)  // after the program and its command
    if (!own_flags.contains(j.command[i].substr(0, j.command[i].find('=')))) flags.push_back(j.command[i]);
  bool const one = s.line.text("distribution_strategy") == "Local";
  json spec{{"model", j.command.at(0)},
            {"strategy", one ? "Local" : value_of(j.command, "distribution_strategy")},
            {"flags", std::move(flags)},
            {"master", {{"template", template_of(j, role::master)}}},
            {"servers", std::move(servers)},
            {"workers", std::move(workers)}};
  if (j.command.at(1) != "train") spec["command"] = j.command[1];
  if (o.suspended) spec["suspend"] = true;
  if (o.changing_batch) spec["changingBatch"] = true;
  if (o.deadline) spec["activeDeadlineSeconds"] = *o.deadline;
  if (o.ttl) spec["ttlSecondsAfterFinished"] = *o.ttl;
  if (o.backoff_limit) spec["backoffLimit"] = *o.backoff_limit;
  return {{"apiVersion", training_job_version},
          {"kind", "TrainingJob"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

bool is_training_job(json const& document) {
  return document.is_object() && text_at(document, "/apiVersion").starts_with("elasticdl.org/") &&
         text_at(document, "/kind") == "TrainingJob";
}

}  // namespace edl::tool
