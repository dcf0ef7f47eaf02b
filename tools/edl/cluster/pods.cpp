// SPDX-License-Identifier: Apache-2.0
#include "cluster/pods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "common/fields.hpp"
#include "edl/cluster/kubernetes/job_size.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/error.hpp"
#include "edl/core/text.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
namespace k8s = kubernetes;

std::string label(json const& pod, std::string const& name) {
  return text_at(pod, "/metadata/labels/" + name);
}

/// What waiting containers say that no waiting mends.
bool is_hopeless(std::string const& reason) {
  static constexpr char const* list[] = {"ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
                                         "CreateContainerConfigError"};
  return std::ranges::find(list, reason) != std::end(list);
}

json const* first_container(json const& pod) {
  static json::json_pointer const at("/status/containerStatuses/0");
  return pod.contains(at) ? &pod.at(at) : nullptr;
}

/// Of the end of a log, which is what a container's last words are when it left no others: the last line.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void add_hindrance(json const& pod, pod_state& s) {
  if (json const* c = first_container(pod); c != nullptr && c->contains("state")) {
    json const& state = c->at("state");
    if (state.contains("waiting")) {
      std::string const reason = text_at(state, "/waiting/reason");
      if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing")
        s.hinders = hindrance{reason, text_at(state, "/waiting/message"), is_hopeless(reason)};
    } else if (state.contains("terminated")) {
      s.exit_code = state.at("terminated").value("exitCode", 0);
      if (s.phase == "Failed")
        s.hinders = hindrance{text_at(state, "/terminated/reason", "Error"),
                              last_line(text_at(state, "/terminated/message")), true};
    }
    if (s.hinders) return;
  }
  if (s.phase == "Failed") {
    s.hinders = hindrance{text_at(pod, "/status/reason", "Failed"), text_at(pod, "/status/message"), true};
    return;
  }
  if (s.phase != "Pending" || !pod.contains(json::json_pointer("/status/conditions"))) return;
  for (json const& c : pod.at("status").at("conditions"))
    if (c.value("type", "") == "PodScheduled" && c.value("status", "") == "False")
      s.hinders = hindrance{text_at(c, "/reason", "Unschedulable"), text_at(c, "/message"), false};
}

void add_master(json const& pod, job_summary& job) {
  pod_state const s = state_of(pod);
  std::string const said = label(pod, "status");
  job.status = s.status == "Terminating" ? "Terminating"
               : s.phase == "Failed"     ? "Failed"
               : s.phase == "Succeeded"  ? "Finished"
               : s.restarting            ? "Restarting"
               : s.phase == "Running"    ? said.empty() || said == "Pending" ? "Starting" : said
               : s.phase.empty()         ? "Pending"
                                         : s.phase;
  job.progress = text_at(pod, "/metadata/annotations/elasticdl~1progress");
  job.report = text_at(pod, "/metadata/annotations/elasticdl~1report");
  job.created = text_at(pod, "/metadata/creationTimestamp");
  job.image = text_at(pod, "/spec/containers/0/image");
  if (s.hinders)
    job.reason = s.hinders->reason + (s.hinders->message.empty() ? "" : ": " + s.hinders->message);
  else if (s.restarting)
    job.reason = fmt::format("its program has ended (exit code {}) and is about to be started again",
                             s.exit_code.value_or(0));
  job.waits = s.ended ? "" : waits_of(pod);
  k8s::job_spec spec;
  if (pod.contains(json::json_pointer("/spec/containers/0/env")))
    for (json const& e : pod.at("spec").at("containers")[0].at("env"))
      if (e.value("name", "") == "EDL_JOB") try {
          spec = k8s::job_from_json(e.value("value", ""));
        } catch (error const&) {
          // A job of another version: how many pods it wants is not known.
        }
  k8s::job_size const size = k8s::shown_size(pod).value_or(k8s::job_size{spec.num_workers, spec.num_servers});
  job.workers_wanted = int(size.workers);
  job.servers_wanted = int(size.servers);
}

}  // namespace

std::optional<process_id> instance_of(std::string const& job, std::string const& pod) {
  std::string const prefix = "elasticdl-" + job + "-";
  if (pod.rfind(prefix, 0) != 0) return std::nullopt;
  return parse_process_id(std::string_view(pod).substr(prefix.size()));
}

std::tuple<int, std::uint64_t, std::string> order_of(json const& pod) {
  std::string const type = label(pod, "elasticdl-replica-type");
  int const role = type == "master" ? 0 : type == "ps" ? 1 : type == "worker" ? 2 : 3;
  return {role, number_from<std::uint32_t>(label(pod, "elasticdl-replica-index")).value_or(0),
          text_at(pod, "/metadata/name")};
}

std::vector<std::string> command_of(json const& pod) {
  std::vector<std::string> all;
  for (char const* part : {"command", "args"}) {
    json::json_pointer const at(std::string("/spec/containers/0/") + part);
    if (!pod.contains(at)) continue;
    for (json const& word : pod.at(at)) all.push_back(word.get<std::string>());
  }
  return all;
}

std::string role_name(json const& pod) {
  std::string const type = label(pod, "elasticdl-replica-type");
  if (type == "master") return type;
  if (type.empty()) return text_at(pod, "/metadata/name");
  return type + "-" + label(pod, "elasticdl-replica-index");
}

std::string waits_of(json const& master) { return text_at(master, "/metadata/annotations/elasticdl~1waits"); }

pod_state state_of(json const& pod) {
  pod_state s;
  s.phase = text_at(pod, "/status/phase", "Pending");
  s.ended = s.phase == "Succeeded" || s.phase == "Failed";
  if (json const* c = first_container(pod)) {
    s.ready = c->value("ready", false);
    s.restarts = c->value("restartCount", 0);
    s.restarting = s.phase == "Running" && c->contains("state") && !c->at("state").empty() &&
                   (c->at("state").contains("waiting") ||
                    c->at("state").value("/terminated/exitCode"_json_pointer, 0) > 128);  // it was killed
  }
  add_hindrance(pod, s);
  s.status = s.phase == "Succeeded" ? "Completed" : s.phase;
  if (s.hinders && s.hinders->reason != "Unschedulable") s.status = s.hinders->reason;
  if (json const* c = first_container(pod);
      c != nullptr && s.phase == "Pending" && text_at(*c, "/state/waiting/reason") == "ContainerCreating")
    s.status = "ContainerCreating";
  if (!text_at(pod, "/metadata/deletionTimestamp").empty() && !s.ended) s.status = "Terminating";
  return s;
}

std::string training_job_of_pod(json const& pod) {
  return text_at(pod, "/metadata/ownerReferences/0/kind") == "TrainingJob"
             ? text_at(pod, "/metadata/ownerReferences/0/uid")
             : "";
}

json own_pods(json const& pods, std::string const& training_job) {
  auto const key = [](json const& pod) {
    return std::pair(text_at(pod, "/metadata/namespace"), label(pod, "elasticdl-job-name"));
  };
  std::map<std::pair<std::string, std::string>, std::string> masters;
  for (json const& pod : pods)
    if (label(pod, "elasticdl-replica-type") == "master") {
      // Members of a TrainingJob are its own, not the master's, which may be replaced.
      std::string const above = training_job_of_pod(pod);
      masters[key(pod)] = above.empty() ? text_at(pod, "/metadata/uid") : above;
    }
  json own = json::array();
  for (json const& pod : pods) {
    auto const master = masters.find(key(pod));
    std::string const owner = text_at(pod, "/metadata/ownerReferences/0/uid");
    if (!training_job.empty()) {
      if (owner == training_job) own.push_back(pod);
      continue;
    }
    if (master == masters.end() || owner.empty() || owner == master->second) own.push_back(pod);
  }
  return own;
}

std::vector<job_summary> summarise(json const& all_pods) {
  json const pods = own_pods(all_pods);
  std::map<std::pair<std::string, std::string>, job_summary> all;
  for (json const& pod : pods) {
    std::string const name = label(pod, "elasticdl-job-name"), space = text_at(pod, "/metadata/namespace");
    if (name.empty()) continue;
    job_summary& job = all[{space, name}];
    job.name = name;
    job.space = space;
    if (job.uid.empty()) job.uid = training_job_of_pod(pod);
    std::string const type = label(pod, "elasticdl-replica-type");
    pod_state const s = state_of(pod);
    if (type == "master") add_master(pod, job);
    if (type == "worker") job.workers += s.phase == "Running";
    if (type == "ps") job.servers += s.phase == "Running";
  }
  std::vector<job_summary> list;
  for (auto& [key, job] : all) {
    if (job.status.empty())
      job.status = "Orphaned";  // pods whose master is gone: the cluster is removing them
    list.push_back(std::move(job));
  }
  return list;
}

std::optional<std::chrono::system_clock::time_point> parse_time(std::string const& text) {
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &y, &mo, &d, &h, &mi, &s, &used) != 6)
    return std::nullopt;
  std::chrono::year_month_day const day{std::chrono::year(y), std::chrono::month(unsigned(mo)),
                                        std::chrono::day(unsigned(d))};
  if (!day.ok() || std::size_t(used) >= text.size() || text.back() != 'Z') return std::nullopt;
  std::chrono::nanoseconds fraction{0};
  if (text[std::size_t(used)] == '.') {
    std::string digits = text.substr(std::size_t(used) + 1, text.size() - std::size_t(used) - 2);
    digits.resize(9, '0');
    fraction = std::chrono::nanoseconds(std::atoll(digits.c_str()));
  }
  return std::chrono::sys_days(day) + std::chrono::hours(h) + std::chrono::minutes(mi) +
         std::chrono::seconds(s) + std::chrono::duration_cast<std::chrono::system_clock::duration>(fraction);
}

std::string age(std::chrono::seconds elapsed) {
  auto const s = std::max<std::int64_t>(0, elapsed.count());
  if (s < 120) return fmt::format("{}s", s);
  if (s < 600) return s % 60 == 0 ? fmt::format("{}m", s / 60) : fmt::format("{}m{}s", s / 60, s % 60);
  if (s < 3 * 3600) return fmt::format("{}m", s / 60);
  if (s < 8 * 3600)
    return s % 3600 / 60 == 0 ? fmt::format("{}h", s / 3600) : fmt::format("{}h{}m", s / 3600, s % 3600 / 60);
  if (s < 48 * 3600) return fmt::format("{}h", s / 3600);
  if (s < 8 * 86400) return fmt::format("{}d{}h", s / 86400, s % 86400 / 3600);
  return fmt::format("{}d", s / 86400);
}

}  // namespace edl::tool
