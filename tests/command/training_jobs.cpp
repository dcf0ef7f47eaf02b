// SPDX-License-Identifier: Apache-2.0
#include "cluster/training_jobs.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/events.hpp"
#include "cluster/explain.hpp"
#include "command/tool.hpp"

namespace training_jobs_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
namespace type = edl::kubernetes::condition_type;

namespace {

live_job job(edl::kubernetes::training_job_status status = {}) {
  live_job j;
  j.resource.space = "default";
  j.resource.name = "j";
  j.resource.uid = "U1";
  j.resource.created = "2026-11-22T10:00:00Z";
  j.resource.spec.workers = {.min = 1, .max = 8};
  status.observed_generation = 1;
  j.resource.status = std::move(status);
  return j;
}

edl::kubernetes::condition is(std::string_view what, edl::kubernetes::truth status, std::string reason = "",
                              std::string message = "") {
  return {.type = std::string(what),
          .status = status,
          .reason = std::move(reason),
          .message = std::move(message),
          .last_transition_time = "2026-11-22T10:30:00Z"};
}

json pod(std::string const& role, std::string const& index, std::string const& owner_kind,
         std::string const& owner, std::string const& uid) {
  std::string const name = role == "master" ? "elasticdl-j-master" : "elasticdl-j-" + role + "-" + index;
  return {{"metadata",
           {{"name", name},
            {"namespace", "default"},
            {"uid", uid},
            {"creationTimestamp", "2026-11-22T10:10:00Z"},
            {"annotations", {{"elasticdl/progress", "tasks 3/9"}}},
            {"ownerReferences", {{{"kind", owner_kind}, {"uid", owner}}}},
            {"labels",
             {{"elasticdl-job-name", "j"},
              {"elasticdl-replica-type", role},
              {"elasticdl-replica-index", index}}}}},
          {"status", {{"phase", "Running"}}}};
}

}  // namespace

TEST_CASE("a TrainingJob has the words that a plain job has") {
  CHECK(status_of(job().resource) == "Pending");
  edl::kubernetes::condition const admitted = is(type::admitted, edl::kubernetes::truth::yes);
  CHECK(status_of(job({.conditions = {admitted}}).resource) == "Starting");
  CHECK(status_of(job({.conditions = {admitted, is(type::running, edl::kubernetes::truth::yes)}}).resource) ==
        "Running");
  CHECK(status_of(job({.conditions = {is(type::succeeded, edl::kubernetes::truth::yes)}}).resource) ==
        "Finished");
  CHECK(status_of(job({.conditions = {is(type::failed, edl::kubernetes::truth::yes)}}).resource) == "Failed");
  live_job gone = job();
  gone.resource.deleted = "2026-11-22T11:00:00Z";
  CHECK(status_of(gone.resource) == "Terminating");
}

TEST_CASE("what hinders it is said, and nothing else is") {
  live_job unseen = job();
  unseen.resource.status.observed_generation = 0;
  CHECK(has(hindrance_of(unseen), "no controller has read it yet"));
  live_job const waits = job({.conditions = {is(type::admitted, edl::kubernetes::truth::no, "NoRoom",
                                                "2 workers of 1 cpu need 2, and 0.5 are free.")}});
  CHECK(hindrance_of(waits) == "NoRoom: 2 workers of 1 cpu need 2, and 0.5 are free.");
  live_job both = waits;
  both.resource.status.conditions.push_back(
      is(type::stalled, edl::kubernetes::truth::yes, "Refused", "no such class"));
  CHECK(hindrance_of(both) == "Refused: no such class");
  both.resource.spec.managed_by = "example.com/other";
  CHECK(has(hindrance_of(both), "spec.managedBy is example.com/other"));
  live_job done = job({.conditions = {is(type::admitted, edl::kubernetes::truth::no, "Finished"),
                                      is(type::succeeded, edl::kubernetes::truth::yes)}});
  CHECK(hindrance_of(done).empty());
  CHECK(hindrance_of(job({.conditions = {is(type::admitted, edl::kubernetes::truth::yes)}})).empty());
}

TEST_CASE("one table has both: pods count for the TrainingJob that owns them") {
  json const pods = json::array({pod("master", "0", "TrainingJob", "U1", "m"),
                                 pod("worker", "0", "TrainingJob", "U1", "w0"),
                                 pod("worker", "1", "TrainingJob", "U1", "w1")});
  CHECK(own_pods(pods).size() == 3);  // members are not the master's
  live_job of =
      job({.workers = {.desired = 4, .running = 1}, .progress = {.records = 5, .total_records = 9}});
  auto const both = all_jobs({of}, summarise(pods));
  REQUIRE(both.size() == 1);
  CHECK(both[0].kind == "TrainingJob");
  CHECK(both[0].workers == 2);  // the pods are newer than the status
  CHECK(both[0].workers_wanted == 4);
  CHECK(both[0].range == "1-8");
  CHECK(both[0].progress == "tasks 3/9");
  // Those of an older one of the same name are not its own.
  of.resource.uid = "U2";
  auto const apart = all_jobs({of}, summarise(pods));
  REQUIRE(apart.size() == 2);
  CHECK(std::ranges::count(apart, "TrainingJob", &job_summary::kind) == 1);
  CHECK(own_pods(pods, "U2").empty());
  // Without pods the status tells.
  auto const alone =
      all_jobs({job({.progress = {.records = 5, .total_records = 9, .epoch = 0, .epochs = 2}})}, {});
  CHECK(alone[0].progress == "5 of 9 records, epoch 1 of 2");
  live_job broken = job();
  broken.fault = "spec.model is missing";
  CHECK(all_jobs({broken}, {})[0].status == "Unreadable");
  CHECK(all_jobs({broken}, {})[0].reason == "spec.model is missing");
}

TEST_CASE("events of the TrainingJob, and of masters that came and went in it") {
  auto const event = [](std::string const& kind, std::string const& name, std::string const& uid,
                        std::string const& at) {
    return json{{"involvedObject", {{"kind", kind}, {"name", name}, {"uid", uid}}},
                {"reason", "R" + uid},
                {"lastTimestamp", at}};
  };
  json const items = json::array({event("Pod", "elasticdl-j-master", "old", "2026-11-22T09:00:00Z"),
                                  event("Pod", "elasticdl-j-master", "m1", "2026-11-22T10:05:00Z"),
                                  event("Pod", "elasticdl-j-worker-0", "w0", "2026-11-22T10:06:00Z"),
                                  event("TrainingJob", "j", "U1", "2026-11-22T10:07:00Z"),
                                  event("TrainingJob", "j", "U0", "2026-11-22T10:08:00Z"),
                                  event("TrainingJob", "k", "U3", "2026-11-22T10:08:00Z")});
  json const pods = json::array({pod("master", "0", "TrainingJob", "U1", "m2")});
  live_job const of = job();
  auto const all = read_events(items, "j", pods, &of.resource);
  words reasons;
  for (happening const& h : all) reasons.push_back(h.who + " " + h.reason);
  CHECK(reasons == words{"master Rm1", "worker-0 Rw0", "job RU1"});
}

TEST_CASE("explain says why it waits, and who changed its size") {
  explanation x;
  live_job of =
      job({.conditions = {is(type::admitted, edl::kubernetes::truth::no, "NoRoom", "it needs 3 cores")},
           .attempts = 2,
           .scale_records = {{"2026-11-22T10:20:00Z", 4, 2, "a service needs room"},
                             {"2026-11-22T10:10:00Z", 1, 4, "there was room"}}});
  explain_training_job(of, of.resource.name, x);
  REQUIRE(x.now.size() == 2);
  CHECK(has(x.now[0].text, "is at attempt 2: 1 have failed, and 3 may"));
  CHECK(x.now[1].text == "NoRoom: it needs 3 cores");
  REQUIRE(x.before.size() == 2);
  CHECK(x.before[0].text == "its workers became 4 instead of 1: there was room");
  CHECK(x.before[1].text == "its workers became 2 instead of 4: a service needs room");
  explanation asleep;
  of = job({.conditions = {is(type::suspended, edl::kubernetes::truth::yes)}});
  of.resource.spec.suspend = true;
  explain_training_job(of, "j -n team", asleep);
  CHECK(has(asleep.now.at(0).text, "`edl resume j -n team`"));
}

TEST_CASE("explain tells a resize once: by the status, or by an Event where that has forgotten it") {
  live_job const of = job({.scale_records = {{"2026-11-22T10:20:00Z", 4, 2, "a service needs room"}}});
  auto const at = [](char const* time, char const* reason, bool warning = false) {
    happening h{
        .when_text = time, .who = "job", .reason = reason, .message = "2 -> 4 workers", .warning = warning};
    h.when = h.first = *parse_time(time);
    return h;
  };
  std::vector<happening> events{at("2026-11-22T10:10:00Z", "Scaled"), at("2026-11-22T10:20:00Z", "Scaled"),
                                at("2026-11-22T10:20:01Z", "Scaled"),
                                at("2026-11-22T10:21:00Z", "Scaled", true),
                                at("2026-11-22T10:22:00Z", "MasterRuns")};
  erase_resizes(events, of.resource);
  REQUIRE(events.size() == 3);
  CHECK(events[0].when_text == "2026-11-22T10:10:00Z");
  CHECK(events[1].warning);
  CHECK(events[2].reason == "MasterRuns");
}

}  // namespace training_jobs_test
