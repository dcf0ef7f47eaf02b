// SPDX-License-Identifier: Apache-2.0
#include "cluster/get.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cluster/cluster.hpp"
#include "cluster/events.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "common/table.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using rows = std::vector<words>;

std::string age_of(std::string const& created) {
  auto const since = parse_time(created);
  return since ? age(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() -
                                                                      *since))
               : "?";
}

}  // namespace

json to_json(job_summary const& j) {
  return {{"name", j.name},
          {"kind", j.kind.empty() ? "Job" : j.kind},
          {"range", j.range},
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

namespace {

/// What is worth knowing first, in a line of a table.
std::string remark_of(job_summary const& j) {
  if (j.status == "Restarting" || (j.progress.empty() && j.waits.empty()) ||
      (!j.kind.empty() && !j.reason.empty()))
    return shortened(j.reason, 120);
  return j.waits.empty() ? j.progress : shortened("waits: " + j.waits, 120);
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

/// " (from 1 to 8, as the autoscaler decides)".
std::string sizes_of(edl::kubernetes::training_job const& job) {
  auto const& w = job.spec.workers;
  return w.replicas ? fmt::format(" ({} by hand, from {} to {})", *w.replicas, w.min, w.max)
                    : fmt::format(" (from {} to {}, as the autoscaler decides)", w.min, w.max);
}

void add_training_job(edl::kubernetes::training_job const& job, rows& head) {
  edl::kubernetes::training_job_status const& s = job.status;
  std::string flags;
  for (std::string const& f : job.spec.flags) flags += (flags.empty() ? "" : " ") + f;
  head.push_back({"Model:", fmt::format("{} ({}, {})", job.spec.model, job.spec.command, job.spec.strategy)});
  head.push_back({"Flags:", flags});
  if (s.attempts > 0)
    head.push_back(
        {"Attempt:", fmt::format("{}, of {} that may fail; its master was started again {}", s.attempts,
                                 job.spec.backoff_limit, counted(s.restarts, "time"))});
  if (job.spec.spot && !s.spot.pool.empty())
    head.push_back({"Pool:", fmt::format("{} for {}, {:.2f} USD so far: {}", s.spot.pool, age_of(s.spot.time),
                                         s.spot.usd, s.spot.reason)});
  if (!s.start_time.empty()) head.push_back({"Started:", s.start_time});
  if (!s.completion_time.empty()) head.push_back({"Ended:", s.completion_time});
}

char const* in_word(edl::kubernetes::truth t) {
  return t == edl::kubernetes::truth::yes ? "True" : t == edl::kubernetes::truth::no ? "False" : "Unknown";
}

void print_conditions(edl::kubernetes::training_job_status const& s) {
  if (s.conditions.empty()) return;
  rows table{{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (edl::kubernetes::condition const& c : s.conditions)
    table.push_back({c.type, in_word(c.status), age_of(c.last_transition_time), c.reason, c.message});
  fmt::print("{}\n", to_table(table));
}

/// How many workers it had, why, and how fast it was with so many.
void print_sizes(edl::kubernetes::training_job_status const& s) {
  if (!s.scale_records.empty()) {
    rows table{{"AGE", "WORKERS", "REASON"}};
    for (edl::kubernetes::scale_record const& r : s.scale_records)
      table.push_back({age_of(r.time), fmt::format("{} to {}", r.from, r.to), r.reason});
    fmt::print("\n{}", to_table(table));
  }
  if (s.speeds.empty()) return;
  rows table{{"WORKERS", "RECORDS/S"}};
  for (edl::kubernetes::speed_record const& one : s.speeds)
    table.push_back({std::to_string(one.workers), fmt::format("{:.1f}", one.records_per_second)});
  fmt::print("\n{}", to_table(table));
}

}  // namespace

std::vector<flag> get_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "all_namespaces",
                 .fallback = "false",
                 .help = "jobs of all namespaces",
                 .aliases = {"A"},
                 .type = flag::value_type::truth});
  all.push_back(output_flag());
  return all;
}

std::vector<job_summary> jobs_of(cluster& c, bool everywhere, std::string& missing) {
  json const pods =
      c.api.get(everywhere ? "/api/v1/pods" : c.path("pods"), {{"labelSelector", "app=elasticdl"}});
  live_jobs const owners = list_training_jobs(c, everywhere);
  missing = owners.missing;
  return all_jobs(owners.list, summarise(pods.at("items")));
}

int get(words const& line) {
  command_line const l("get", get_flags(), line, 1, 2, "kind of object (jobs)");
  std::string const& what = l.arguments()[0];
  if (what != "jobs" && what != "job")
    throw usage_error(fmt::format("edl get {}: expected jobs; `edl describe JOB` shows a job's pods", what));
  cluster c = connect(l);
  bool const everywhere = l.truth("all_namespaces");
  std::string missing;
  auto jobs = jobs_of(c, everywhere, missing);
  if (!missing.empty()) say(missing);
  if (l.arguments().size() == 2) {
    std::erase_if(jobs, [&](job_summary const& j) { return j.name != l.arguments()[1]; });
    if (jobs.empty()) throw no_such_job(c, l.arguments()[1]);
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
  rows table{{"NAME", "STATUS", "WORKERS", "SERVERS", "MIN-MAX", "AGE", "PROGRESS"}};
  if (everywhere) table[0].insert(table[0].begin(), "NAMESPACE");
  for (job_summary const& j : jobs) {
    words row{j.name,
              j.status,
              fmt::format("{}/{}", j.workers, j.workers_wanted),
              fmt::format("{}/{}", j.servers, j.servers_wanted),
              j.range.empty() ? "-" : j.range,
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
  auto const above = find_training_job(c, job);
  json const pods = own_pods(c.pods_of(job), above ? above->resource.uid : "");
  if (pods.empty() && !above) throw no_such_job(c, job);
  auto const of_pods = summarise(pods);
  job_summary const s = above ? summary_of(*above, of_pods.empty() ? nullptr : &of_pods[0]) : of_pods.at(0);
  auto const events = events_of(c, job, pods, above ? &above->resource : nullptr).list;
  if (l.text("output") != "table") {
    json all = to_json(s);
    if (above) all["training_job"] = status_json(above->resource.status);
    all["pods"] = json::array();
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
  rows head{{"Name:", s.name}, {"Namespace:", s.space}, {"Status:", s.status}};
  if (!s.reason.empty()) head.push_back({"Reason:", s.reason});
  if (!s.waits.empty()) head.push_back({"Waits:", s.waits});
  if (!s.progress.empty()) head.push_back({"Progress:", s.progress});
  head.insert(head.end(), {{"Workers:", fmt::format("{} running of {}{}", s.workers, s.workers_wanted,
                                                    above ? sizes_of(above->resource) : "")},
                           {"Servers:", fmt::format("{} running of {}", s.servers, s.servers_wanted)}});
  if (!s.image.empty()) head.push_back({"Image:", s.image});
  if (above) add_training_job(above->resource, head);
  if (!pods.empty()) head.push_back({"Command:", fmt::format("{}", fmt::join(command_of(pods[0]), " "))});
  head.push_back({"Created:", fmt::format("{} ({} ago)", s.created, age_of(s.created))});
  fmt::print("{}\n", to_table(head));
  if (above) print_conditions(above->resource.status);
  rows table{{"POD", "READY", "STATUS", "RESTARTS", "AGE", "NODE", "REQUEST", "PRIORITY"}};
  for (json const& pod : pods) {
    pod_state const p = state_of(pod);
    table.push_back({text_at(pod, "/metadata/name"), p.ready ? "1/1" : "0/1", p.status,
                     std::to_string(p.restarts), age_of(text_at(pod, "/metadata/creationTimestamp")),
                     text_at(pod, "/spec/nodeName", "-"), resources_of(pod, "requests"),
                     text_at(pod, "/spec/priorityClassName", "-")});
  }
  if (!pods.empty()) fmt::print("{}", to_table(table));
  if (above) print_sizes(above->resource.status);
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
