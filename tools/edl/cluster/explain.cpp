// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/cluster.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "common/table.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using entry = explanation::entry;

/// "waits for room: Unschedulable: 0/3 nodes are available; ask for less …"
std::string sentence(std::string const& reason, std::string const& message, std::string const& job,
                     std::string const& by = "") {
  std::string const meaning = advise(reason, message, job, by).meaning,
                    words = in_words(reason, message, job, by);
  return meaning.empty() ? words : meaning + ": " + words;
}

void add_now(json const& pod, std::vector<happening> const& events, std::string const& job, explanation& to) {
  pod_state const s = state_of(pod);
  std::string const who = role_name(pod);
  if (s.status == "Terminating")
    to.now.push_back(
        {"", who, fmt::format("is shutting down since {}", text_at(pod, "/metadata/deletionTimestamp"))});
  else if (s.hinders)
    to.now.push_back({"", who,
                      sentence(s.hinders->reason, s.hinders->message, job) +
                          (s.exit_code ? fmt::format(" (exit code {})", *s.exit_code) : "")});
  else if (s.phase == "Pending")
    to.now.push_back({"", who, waits_for(pod, events, job)});
  else if (s.restarting)
    to.now.push_back({"", who,
                      fmt::format("its program has ended (exit code {}) and is about to be started again",
                                  s.exit_code.value_or(0))});
  if (std::string const what = waits_of(pod); !what.empty() && !s.ended)
    to.now.push_back({"", who, "waits: " + what});
}

/// Why a pod's container was started again, and why a pod must go.
void add_endings(json const& pod, std::string const& job, explanation& to) {
  std::string const who = role_name(pod);
  json::json_pointer const last("/status/containerStatuses/0/lastState/terminated");
  if (pod.contains(last)) {
    json const& t = pod.at(last);
    to.before.push_back({text_at(t, "/finishedAt"), who,
                         fmt::format("its program ended ({}, exit code {}) and was started again in place",
                                     text_at(t, "/reason", "Error"), t.value("exitCode", 0))});
  }
  if (!pod.contains(json::json_pointer("/status/conditions"))) return;
  for (json const& c : pod.at("status").at("conditions"))
    if (c.value("type", "") == "DisruptionTarget" && c.value("status", "") == "True")
      to.before.push_back(
          {text_at(c, "/lastTransitionTime"), who,
           fmt::format("must go: {}", in_words(text_at(c, "/reason"), text_at(c, "/message"), job))});
}

/// Whether a readiness probe that failed then says that a running pod did not answer any more.
bool was_ready(json const& pod, std::chrono::system_clock::time_point then) {
  auto const began = parse_time(text_at(pod, "/status/containerStatuses/0/state/running/startedAt"));
  if (!began || !pod.contains(json::json_pointer("/status/conditions"))) return false;
  for (json const& c : pod.at("status").at("conditions")) {
    if (c.value("type", "") != "Ready") continue;
    auto const since = parse_time(text_at(c, "/lastTransitionTime"));
    // A container that has not been ready yet leaves the condition as it was before it began.
    return since && (c.value("status", "") == "True" ? then > *since : *since > *began);
  }
  return false;
}

/// `of`: the pod of which it is said, while it runs.
bool is_usual(happening const& e, json const* of) {
  // A program that begins does not listen yet, and one that ends no more.
  if (e.reason == "Unhealthy")
    return of == nullptr || !(e.message.starts_with("Liveness") ||
                              (e.message.starts_with("Readiness") && was_ready(*of, e.when)));
  static std::set<std::string> const usual{"Scheduled", "Pulling", "Pulled",
                                           "Created",   "Started", "SuccessfulAttachVolume"};
  return !e.warning && usual.count(e.reason) > 0;
}

}  // namespace

json to_json(std::vector<entry> const& list) {
  json all = json::array();
  for (entry const& e : list) {
    all.push_back({{"who", e.who}, {"text", e.text}});
    if (!e.when.empty()) all.back()["time"] = e.when;
  }
  return all;
}

std::string waits_for(json const& pod, std::vector<happening> const& events, std::string const& job) {
  std::string const uid = text_at(pod, "/metadata/uid"), who = role_name(pod);
  happening const* last = nullptr;
  for (happening const& e : events)
    if (e.who == who && (uid.empty() || e.uid.empty() || e.uid == uid)) last = &e;
  if (last != nullptr && (last->warning || last->reason == "Pulling"))
    return sentence(last->reason, last->message, job, last->by);
  if (text_at(pod, "/spec/nodeName").empty())
    return "waits for the scheduler, which has not considered it yet";
  return fmt::format("is being created on node {}, which reports nothing else",
                     text_at(pod, "/spec/nodeName"));
}

explanation explain_pods(std::string const& job, json const& pods, std::vector<happening> const& events,
                         bool everything) {
  explanation x;
  std::map<std::string, json const*> run;
  for (json const& pod : pods) {
    add_now(pod, events, job, x);
    add_endings(pod, job, x);
    if (state_of(pod).status == "Running") run[text_at(pod, "/metadata/uid")] = &pod;
  }
  for (happening const& e : events)
    if (auto const of = run.find(e.uid); everything || !is_usual(e, of == run.end() ? nullptr : of->second))
      x.before.push_back({e.when_text, e.who,
                          sentence(e.reason, e.message, job, e.by) +
                              (e.count > 1 ? fmt::format(" ({} times)", e.count) : "")});
  std::ranges::stable_sort(x.before, {}, [](entry const& e) {
    return parse_time(e.when).value_or(std::chrono::system_clock::time_point());
  });
  return x;
}

void erase_resizes(std::vector<happening>& events, edl::kubernetes::training_job const& job) {
  std::optional<std::chrono::system_clock::time_point> first;
  for (edl::kubernetes::scale_record const& r : job.status.scale_records)
    if (auto const at = parse_time(r.time)) first = std::min(first.value_or(*at), *at);
  std::erase_if(events, [&](happening const& e) {
    return first && e.when >= *first && e.reason == "Scaled" && !e.warning;
  });
}

void explain_training_job(live_job const& of, std::string const& named, explanation& to) {
  edl::kubernetes::training_job const& job = of.resource;
  namespace type = edl::kubernetes::condition_type;
  auto const now = [&](std::string text) { to.now.insert(to.now.begin(), {"", "job", std::move(text)}); };
  edl::kubernetes::training_job_status const& s = job.status;
  if (std::string const why = hindrance_of(of); !why.empty())
    now(why);
  else if (job.spec.suspend && !job.finished())
    now(edl::kubernetes::is_true(s, type::suspended)
            ? fmt::format("is suspended: `edl resume {}` lets it go on", named)
            : "is being suspended: its workers return their leases");
  else if (auto const* resizing = edl::kubernetes::find_condition(s, type::resizing);
           resizing != nullptr && resizing->status == edl::kubernetes::truth::yes)
    now(resizing->message.empty() ? "its size is being changed" : resizing->message);
  if (job.spec.spot && !s.spot.pool.empty() && !job.finished())
    now(fmt::format("{}, which has cost {:.2f} USD so far", s.spot.reason, s.spot.usd));
  for (edl::kubernetes::scale_record const& r : s.scale_records)
    to.before.push_back(
        {r.time, "job", fmt::format("its workers became {} instead of {}: {}", r.to, r.from, r.reason)});
  for (edl::kubernetes::condition const& c : s.conditions)
    if (c.status == edl::kubernetes::truth::yes && (c.type == type::succeeded || c.type == type::failed))
      to.before.push_back({c.last_transition_time, "job",
                           fmt::format("{}{}{}", c.type == type::failed ? "has failed" : "has succeeded",
                                       c.message.empty() ? "" : ": ", c.message)});
  if (s.attempts > 1)
    now(fmt::format("is at attempt {}: {} have failed, and {} may", s.attempts, s.attempts - 1,
                    job.spec.backoff_limit));
  std::ranges::stable_sort(to.before, {}, [](entry const& e) {
    return parse_time(e.when).value_or(std::chrono::system_clock::time_point());
  });
}

std::vector<flag> explain_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "all",
                 .fallback = "false",
                 .help = "also the usual events: pods that were scheduled, pulled an image, and started",
                 .type = flag::value_type::truth});
  all.push_back(output_flag());
  return all;
}

int explain(words const& line) {
  command_line const l("explain", explain_flags(), line, 1, 1, "the job's name");
  std::string const& job = l.arguments()[0];
  cluster c = connect(l);
  auto const above = find_training_job(c, job);
  json const pods = own_pods(c.pods_of(job), above ? above->resource.uid : "");
  auto events = events_of(c, job, pods, above ? &above->resource : nullptr);
  if (above) erase_resizes(events.list, above->resource);
  if (pods.empty() && events.list.empty() && !above) throw no_such_job(c, job);
  explanation x = explain_pods(c.named(job), pods, events.list, l.truth("all"));
  if (above) explain_training_job(*above, c.named(job), x);
  if (l.text("output") != "table") {
    json all{{"name", job}, {"now", to_json(x.now)}, {"before", to_json(x.before)}};
    if (!events.missing.empty()) all["missing"] = events.missing;
    fmt::print("{}", to_text(all, l.text("output")));
    return done;
  }
  std::string nothing;
  if (pods.empty() && !above) {
    fmt::print("job {} is gone; this is known about it:\n", job);
  } else {
    auto const of_pods = summarise(pods);
    job_summary const s = above ? summary_of(*above, of_pods.empty() ? nullptr : &of_pods[0]) : of_pods.at(0);
    bool const ended = s.status == "Finished" || s.status == "Failed";
    fmt::print("job {} is {}", job, s.status);
    if (!ended)
      fmt::print(": {} of {} workers and {} of {} servers run{}", s.workers, s.workers_wanted, s.servers,
                 s.servers_wanted, s.progress.empty() ? "" : "; " + printable(s.progress));
    fmt::print("\n");
    nothing = ended ? "" : "  nothing waits\n";
  }
  std::vector<words> rows;
  for (entry const& e : x.now) rows.push_back({"  now", e.who, e.text});
  for (entry const& e : x.before) rows.push_back({"  " + (e.when.empty() ? "?" : e.when), e.who, e.text});
  std::ranges::rotate(rows, rows.begin() + std::ptrdiff_t(x.now.size()));  // oldest first, how it is now last
  fmt::print("{}", to_table(rows));
  if (x.now.empty()) fmt::print("{}", nothing);
  if (!events.missing.empty()) say(events.missing);
  return done;
}

}  // namespace edl::tool
