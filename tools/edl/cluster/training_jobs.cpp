// SPDX-License-Identifier: Apache-2.0
#include "cluster/training_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "edl/cli/nearest.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;
namespace condition_type = edl::kubernetes::condition_type;

live_job read(cluster const& c, json const& object) {
  live_job job;
  try {
    job.resource = edl::kubernetes::read_training_job(object);
  } catch (error const& bad) {
    job.fault = bad.what();
    job.resource.name = text_at(object, "/metadata/name");
    job.resource.space = text_at(object, "/metadata/namespace");
    job.resource.uid = text_at(object, "/metadata/uid");
    job.resource.created = text_at(object, "/metadata/creationTimestamp");
    job.resource.deleted = text_at(object, "/metadata/deletionTimestamp");
  }
  job.reach = c.reach;
  return job;
}

/// A cluster that knows TrainingJobs names the one that it has not.
bool is_unknown_kind(k8s::api_error const& bad) {
  return bad.code() == 404 && bad.message().find("\" not found") == std::string::npos;
}

std::string said_by(edl::kubernetes::condition const& c) {
  return c.message.empty() ? c.reason : c.reason.empty() ? c.message : c.reason + ": " + c.message;
}

}  // namespace

std::string training_jobs_path(std::string const& space, std::string const& name) {
  return fmt::format("/apis/{}/{}{}{}{}", edl::kubernetes::api_version,
                     space.empty() ? "" : "namespaces/" + space + "/", edl::kubernetes::training_job_plural,
                     name.empty() ? "" : "/", name);
}

bool knows_training_jobs(cluster& c) {
  try {
    // Anybody may ask that, also where a server would not say of jobs whether it has any.
    c.api.get(fmt::format("/apis/{}", edl::kubernetes::api_version));
    return true;
  } catch (k8s::api_error const& bad) {
    if (bad.code() != 404 && bad.code() != 403) throw;
    return bad.code() == 403;
  }
}

std::optional<live_job> find_training_job(cluster& c, std::string const& name) {
  try {
    return read(c, c.api.get(training_jobs_path(c.space, name)));
  } catch (k8s::api_error const& bad) {
    if (bad.code() != 404 && bad.code() != 403) throw;
    return std::nullopt;
  }
}

live_job training_job_again(cluster& c, std::string const& name, time_point until) {
  std::optional<live_job> found;
  bool announced = false;
  while (!answered([&] { found = find_training_job(c, name); }, until, announced)) continue;
  if (!found) throw error(fmt::format("the TrainingJob '{}' is gone from namespace '{}'", name, c.space));
  return std::move(*found);
}

live_jobs list_training_jobs(cluster& c, bool everywhere) {
  live_jobs all;
  try {
    json const items = c.api.get(training_jobs_path(everywhere ? "" : c.space)).at("items");
    for (json const& one : items) all.list.push_back(read(c, one));
  } catch (k8s::api_error const& bad) {
    if (bad.code() == 403 && knows_training_jobs(c))
      all.missing = fmt::format(
          "TrainingJobs are not shown: {}; `edl rbac --users{}` prints the role that may list them",
          bad.what(), everywhere ? c.reach : c.flags());
    else if (bad.code() != 404 && bad.code() != 403)
      throw;
  }
  return all;
}

live_job change_training_job(cluster& c, std::string const& name, json const& change) {
  try {
    return read(c, c.api.patch(training_jobs_path(c.space, name), change));
  } catch (k8s::api_error const& bad) {
    explain_refusal(c, bad);
  }
}

void explain_refusal(cluster const& c, k8s::api_error const& bad) {
  if (is_unknown_kind(bad))
    throw error(
        fmt::format("the cluster does not know TrainingJobs: an administrator makes them known with `edl "
                    "controller install{}`; `edl train` needs neither",
                    c.reach));
  throw bad;
}

std::string status_of(edl::kubernetes::training_job const& job) {
  static std::map<std::string, std::string> const names{
      {"pending", "Pending"},     {"creating", "Starting"},  {"running", "Running"}, {"scaling", "Scaling"},
      {"suspended", "Suspended"}, {"succeeded", "Finished"}, {"failed", "Failed"}};
  if (!job.deleted.empty()) return "Terminating";
  return names.at(edl::kubernetes::phase_of(job.status));
}

std::string hindrance_of(live_job const& of) {
  edl::kubernetes::training_job const& job = of.resource;
  edl::kubernetes::training_job_status const& s = job.status;
  if (auto const* bad = edl::kubernetes::find_condition(s, condition_type::failed);
      bad && bad->status == edl::kubernetes::truth::yes)
    return said_by(*bad);
  if (job.finished()) return "";
  if (!job.ours())
    return fmt::format("spec.managedBy is {}, the controller of this job", job.spec.managed_by);
  if (auto const* bad = edl::kubernetes::find_condition(s, condition_type::stalled);
      bad && bad->status == edl::kubernetes::truth::yes)
    return said_by(*bad);
  if (job.spec.suspend) return "";
  if (s.observed_generation == 0)
    return fmt::format("no controller has read it yet: `edl doctor{}` checks for one", of.reach);
  if (auto const* admitted = edl::kubernetes::find_condition(s, condition_type::admitted);
      admitted && admitted->status == edl::kubernetes::truth::no)
    return said_by(*admitted);
  return "";
}

std::string progress_of(edl::kubernetes::training_job const& job) {
  edl::kubernetes::job_progress const& p = job.status.progress;
  if (p.observed_time.empty() && p.records == 0) return "";
  std::string text = p.total_records > 0
                         ? fmt::format("{} of {}", p.records, counted(p.total_records, "record"))
                         : counted(p.records, "record");
  if (p.epochs > 0) text += fmt::format(", epoch {} of {}", std::min(p.epoch + 1, p.epochs), p.epochs);
  if (p.records_per_second > 0) text += fmt::format(", {} records/s", p.records_per_second);
  if (!p.estimated_end.empty() && !job.finished()) text += fmt::format(", ends {}", p.estimated_end);
  return text;
}

job_summary summary_of(live_job const& of, job_summary const* pods) {
  edl::kubernetes::training_job const& job = of.resource;
  edl::kubernetes::training_job_status const& s = job.status;
  job_summary out{.name = job.name, .space = job.space, .created = job.created};
  out.kind = std::string(edl::kubernetes::training_job_kind);
  out.uid = job.uid;
  out.status = of.fault.empty() ? status_of(job) : "Unreadable";
  out.reason = of.fault.empty() ? hindrance_of(of) : of.fault;
  out.progress = progress_of(job);
  if (of.fault.empty()) out.range = fmt::format("{}-{}", job.spec.workers.min, job.spec.workers.max);
  out.workers_wanted = int(s.workers.desired);
  out.servers_wanted = int(s.servers.desired);
  out.workers = int(s.workers.running);
  out.servers = int(s.servers.running);
  if (pods == nullptr) return out;
  // Pods are newer than what the controller has written of them.
  out.image = pods->image;
  out.report = pods->report;
  out.workers = pods->workers;
  out.servers = pods->servers;
  if (!pods->progress.empty() && !job.finished()) out.progress = pods->progress;
  if (out.reason.empty() && !job.finished()) out.reason = pods->reason;
  if (!job.finished()) out.waits = pods->waits;
  return out;
}

std::vector<job_summary> all_jobs(std::vector<live_job> const& training_jobs,
                                  std::vector<job_summary> of_pods) {
  std::vector<job_summary> all;
  for (live_job const& job : training_jobs) {
    auto const own = std::ranges::find_if(of_pods, [&](job_summary const& p) {
      return p.space == job.resource.space && p.name == job.resource.name && p.uid == job.resource.uid;
    });
    all.push_back(summary_of(job, own == of_pods.end() ? nullptr : &*own));
    if (own != of_pods.end()) of_pods.erase(own);
  }
  std::ranges::move(of_pods, std::back_inserter(all));
  std::ranges::stable_sort(all, {}, [](job_summary const& j) { return std::pair(j.space, j.name); });
  return all;
}

json master_of(cluster& c, std::string const& job) {
  try {
    return c.api.get(c.path("pods", k8s::pod_name(job, {role::master, 0})));
  } catch (k8s::api_error const& bad) {
    if (bad.code() != 404) throw;
    throw no_such_job(c, job);
  }
}

error no_such_job(cluster& c, std::string const& job) {
  words names;
  json const all =
      c.api.get(c.path("pods"), {{"labelSelector", "app=elasticdl,elasticdl-replica-type=master"}});
  for (json const& pod : all.at("items"))
    names.push_back(text_at(pod, "/metadata/labels/elasticdl-job-name"));
  for (live_job const& one : list_training_jobs(c, false).list) names.push_back(one.resource.name);
  std::string const near = cli::nearest(job, names);
  return error(fmt::format("no job '{}' in namespace '{}'{}", job, c.space,
                           !near.empty()   ? "; did you mean " + near + "?"
                           : names.empty() ? ", nor any other; -n names another namespace"
                                           : fmt::format("; `edl get jobs{}` lists all", c.flags())));
}

}  // namespace edl::tool
