// SPDX-License-Identifier: Apache-2.0
#include "get.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "advice.hpp"
#include "cluster.hpp"
#include "edl/app/flags.hpp"
#include "edl/core/error.hpp"
#include "events.hpp"
#include "pods.hpp"
#include "table.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using rows = std::vector<words>;

flag output_flag() {
  return {.name = "output",
          .fallback = "table",
          .help = "how to print it",
          .aliases = {"o"},
          .choices = {"table", "json", "yaml"}};
}

std::string age_of(std::string const& created) {
  auto const since = parse_time(created);
  return since ? age(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() -
                                                                      *since))
               : "?";
}

json to_json(job_summary const& j) {
  return {{"name", j.name},
          {"namespace", j.space},
          {"status", j.status},
          {"reason", j.reason},
          {"waits", j.waits},
          {"progress", j.progress},
          {"image", j.image},
          {"created", j.created},
          {"workers", {{"running", j.workers}, {"wanted", j.workers_wanted}}},
          {"servers", {{"running", j.servers}, {"wanted", j.servers_wanted}}}};
}

json to_json_pod(json const& pod) {
  pod_state const s = state_of(pod);
  json j{{"name", text_at(pod, "/metadata/name")},
         {"role", role_name(pod)},
         {"status", s.status},
         {"phase", s.phase},
         {"ready", s.ready},
         {"restarts", s.restarts},
         {"node", text_at(pod, "/spec/nodeName")},
         {"ip", text_at(pod, "/status/podIP")},
         {"priority_class", text_at(pod, "/spec/priorityClassName")},
         {"created", text_at(pod, "/metadata/creationTimestamp")}};
  if (s.exit_code) j["exit_code"] = *s.exit_code;
  if (s.hinders) j["reason"] = s.hinders->reason, j["message"] = s.hinders->message;
  return j;
}

/// What is worth knowing first, in a line of a table.
std::string remark_of(job_summary const& j) {
  if (j.status == "Restarting" || (j.progress.empty() && j.waits.empty())) return j.reason.substr(0, 80);
  return j.waits.empty() ? j.progress : ("waits: " + j.waits).substr(0, 120);
}

std::string resources_of(json const& pod, char const* which) {
  std::string text;
  json::json_pointer const at(std::string("/spec/containers/0/resources/") + which);
  if (pod.contains(at))
    for (auto const& [name, amount] : pod.at(at).items())
      text += (text.empty() ? "" : ",") + name + "=" +
              (amount.is_string() ? amount.get<std::string>() : amount.dump());
  return text;
}

std::string command_of(json const& pod) {
  std::string text;
  for (char const* part : {"command", "args"}) {
    json::json_pointer const at(std::string("/spec/containers/0/") + part);
    if (pod.contains(at))
      for (json const& word : pod.at(at)) text += (text.empty() ? "" : " ") + word.get<std::string>();
  }
  return text;
}

}  // namespace

std::vector<flag> get_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "all_namespaces",
                 .fallback = "false",
                 .help = "jobs of all namespaces",
                 .aliases = {"A"},
                 .what = flag::kind::truth});
  all.push_back(output_flag());
  return all;
}

int get(words const& line) {
  command_line const l("get", get_flags(), line, 1, 2, "what to get (jobs)");
  std::string const& what = l.arguments()[0];
  if (what != "jobs" && what != "job")
    throw usage_error(fmt::format("edl get {}: expected jobs; `edl describe JOB` shows a job's pods", what));
  cluster c = connect(l);
  bool const everywhere = l.truth("all_namespaces");
  json const pods =
      c.api.get(everywhere ? "/api/v1/pods" : c.path("pods"), {{"labelSelector", "app=elasticdl"}});
  auto jobs = summarise(pods.at("items"));
  if (l.arguments().size() == 2) {
    std::erase_if(jobs, [&](job_summary const& j) { return j.name != l.arguments()[1]; });
    if (jobs.empty()) c.master_of(l.arguments()[1]);  // says that there is no such job
  }
  if (l.text("output") != "table") {
    json list = json::array();
    for (job_summary const& j : jobs) list.push_back(to_json(j));
    fmt::print("{}", to_text(list, l.text("output")));
    return done;
  }
  if (jobs.empty()) {
    fmt::print(stderr, "no jobs{}\n", everywhere ? "" : " in namespace " + c.space);
    return done;
  }
  rows table{{"NAME", "STATUS", "WORKERS", "SERVERS", "AGE", "PROGRESS"}};
  if (everywhere) table[0].insert(table[0].begin(), "NAMESPACE");
  for (job_summary const& j : jobs) {
    words row{j.name,
              j.status,
              fmt::format("{}/{}", j.workers, j.workers_wanted),
              fmt::format("{}/{}", j.servers, j.servers_wanted),
              age_of(j.created),
              remark_of(j)};
    if (everywhere) row.insert(row.begin(), j.space);
    table.push_back(std::move(row));
  }
  fmt::print("{}", to_table(table));
  return done;
}

std::vector<flag> describe_flags() {
  auto all = cluster_flags();
  all.push_back(output_flag());
  return all;
}

int describe_job(words const& line) {
  command_line const l("describe", describe_flags(), line, 1, 1, "the job's name");
  std::string const& job = l.arguments()[0];
  cluster c = connect(l);
  json const pods = own_pods(c.pods_of(job));
  if (pods.empty()) c.master_of(job);  // says that there is no such job
  job_summary const s = summarise(pods).at(0);
  auto const events = events_of(c, job, pods).list;
  if (l.text("output") != "table") {
    json all = to_json(s);
    for (json const& pod : pods) all["pods"].push_back(to_json_pod(pod));
    all["events"] = json::array();
    for (happening const& e : events)
      all["events"].push_back({{"time", e.when_text},
                               {"who", e.who},
                               {"reason", e.reason},
                               {"message", e.message},
                               {"count", e.count}});
    fmt::print("{}", to_text(all, l.text("output")));
    return done;
  }
  json const& first = pods[0];
  rows head{{"Name:", s.name}, {"Namespace:", s.space}, {"Status:", s.status}};
  if (!s.reason.empty()) head.push_back({"Reason:", s.reason});
  if (!s.waits.empty()) head.push_back({"Waits:", s.waits});
  if (!s.progress.empty()) head.push_back({"Progress:", s.progress});
  head.insert(head.end(), {{"Workers:", fmt::format("{} running of {}", s.workers, s.workers_wanted)},
                           {"Servers:", fmt::format("{} running of {}", s.servers, s.servers_wanted)},
                           {"Image:", s.image},
                           {"Command:", command_of(first)},
                           {"Created:", fmt::format("{} ({} ago)", s.created, age_of(s.created))}});
  fmt::print("{}\n", to_table(head));
  rows table{{"POD", "READY", "STATUS", "RESTARTS", "AGE", "NODE", "REQUEST", "PRIORITY"}};
  for (json const& pod : pods) {
    pod_state const p = state_of(pod);
    table.push_back({text_at(pod, "/metadata/name"), p.ready ? "1/1" : "0/1", p.status,
                     std::to_string(p.restarts), age_of(text_at(pod, "/metadata/creationTimestamp")),
                     text_at(pod, "/spec/nodeName", "-"), resources_of(pod, "requests"),
                     text_at(pod, "/spec/priorityClassName", "-")});
  }
  fmt::print("{}", to_table(table));
  if (!events.empty()) {
    rows list{{"AGE", "WHO", "REASON", "MESSAGE"}};
    for (happening const& e : events)
      list.push_back({age_of(e.when_text), e.who,
                      e.count > 1 ? fmt::format("{} ({}x)", e.reason, e.count) : e.reason, e.message});
    fmt::print("\n{}", to_table(list));
  }
  return done;
}

}  // namespace edl::tool
