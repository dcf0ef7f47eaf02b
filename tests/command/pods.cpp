// SPDX-License-Identifier: Apache-2.0
#include "cluster/pods.hpp"

#include <nlohmann/json.hpp>

#include "cluster/events.hpp"
#include "cluster/explain.hpp"
#include "command/tool.hpp"
#include "common/advice.hpp"

namespace pods_test {

using namespace edl::tool;
using namespace std::chrono_literals;
using nlohmann::json;
using support::has;

namespace {

json pod(std::string const& type, int index, json const& status, json const& more = {}) {
  std::string const name =
      type == "master" ? "elasticdl-j-master" : "elasticdl-j-" + type + "-" + std::to_string(index);
  json p{{"metadata",
          {{"name", name},
           {"namespace", "default"},
           {"labels",
            {{"elasticdl-job-name", "j"},
             {"elasticdl-replica-type", type},
             {"elasticdl-replica-index", std::to_string(index)}}}}},
         {"status", status}};
  if (!more.is_null()) p.merge_patch(more);
  return p;
}

json waiting(std::string const& reason, std::string const& message) {
  return {{"phase", "Pending"},
          {"containerStatuses",
           json::array({{{"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}})}};
}

json unschedulable() {
  return {{"phase", "Pending"},
          {"conditions", json::array({{{"type", "PodScheduled"},
                                       {"status", "False"},
                                       {"reason", "Unschedulable"},
                                       {"message", "0/3 nodes are available: 3 Insufficient cpu."}}})}};
}

json event(std::string const& who, std::string const& reason, std::string const& at,
           std::string const& type = "Normal", json const& more = {}) {
  json e{{"metadata", {{"resourceVersion", "7"}}},
         {"involvedObject", {{"kind", "Pod"}, {"name", "elasticdl-j-" + who}}},
         {"reason", reason},
         {"message", "text of " + reason},
         {"type", type},
         {"lastTimestamp", at}};
  if (!more.is_null()) e.merge_patch(more);
  return e;
}

}  // namespace

TEST_CASE("a pod's name says which process of the job it is") {
  CHECK(instance_of("j", "elasticdl-j-master")->role == edl::role::master);
  CHECK(instance_of("j", "elasticdl-j-ps-2")->id == 2);
  CHECK(instance_of("j", "elasticdl-j-worker-13")->id == 13);
  for (char const* other : {"elasticdl-j-k-master", "elasticdl-k-master", "elasticdl-j-worker-",
                            "elasticdl-j-worker-x", "elasticdl-j-worker-1-2", "elasticdl-j-audit", "j", ""})
    CHECK_FALSE(instance_of("j", other));
  CHECK(instance_of("j-k", "elasticdl-j-k-master"));
}

TEST_CASE("recorded pods: what hinders them is said in the cluster's words") {
  auto const folder = tool_test::shared("k8s");
  if (folder.empty()) return;
  auto const state = [&](char const* file) {
    return state_of(json::parse(tool_test::recorded(folder / "transcripts" / file)));
  };
  auto const failed = state("12-pod-get-failed.http");
  CHECK(failed.ended);
  CHECK(failed.phase == "Failed");
  CHECK(failed.exit_code.value() == 3);
  CHECK(failed.status == "Error");
  auto const killed = state("13-pod-get-oom-killed.http");
  CHECK(killed.status == "OOMKilled");
  CHECK(has(in_words(killed.hinders->reason, killed.hinders->message, "j"), "--worker_resource_limit"));
  auto const pending = state("21-pod-get-pending-unschedulable.http");
  CHECK(pending.status == "Pending");
  CHECK(pending.hinders->reason == "Unschedulable");
  CHECK(has(pending.hinders->message, "nodes are available"));
  CHECK_FALSE(pending.hinders->hopeless);
}

TEST_CASE("what time does not mend is told from what it does") {
  for (char const* never : {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"})
    CHECK(state_of(pod("master", 0, waiting(never, "m"))).hinders->hopeless);
  for (char const* yet : {"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"})
    CHECK_FALSE(state_of(pod("master", 0, waiting(yet, "m"))).hinders->hopeless);
  CHECK_FALSE(state_of(pod("master", 0, waiting("ContainerCreating", ""))).hinders);
  CHECK(state_of(pod("master", 0, waiting("ContainerCreating", ""))).status == "ContainerCreating");
  CHECK(state_of(pod("worker", 0, {{"phase", "Running"}},
                     {{"metadata", {{"deletionTimestamp", "2026-11-20T10:39:00Z"}}}}))
            .status == "Terminating");
  // Last words that are the end of a log: the last line of it.
  json const ended{
      {"phase", "Failed"},
      {"containerStatuses",
       json::array(
           {{{"state",
              {{"terminated", {{"reason", "Error"}, {"exitCode", 1}, {"message", "one\ntwo\n"}}}}}}})}};
  CHECK(state_of(pod("master", 0, ended)).hinders->message == "two");
}

TEST_CASE("jobs are summed up from their pods") {
  json const variable{{"name", "EDL_JOB"},
                      {"value", R"({"job_name": "j", "num_workers": 4, "num_ps_pods": 2})"}};
  json const container{{"image", "i:1"}, {"env", json::array({variable})}};
  json const spec{{"containers", json::array({container})}};
  json const list = json::array(
      {pod("master", 0, {{"phase", "Running"}},
           {{"spec", spec},
            {"metadata",
             {{"labels", {{"status", "Running"}}}, {"annotations", {{"elasticdl/progress", "tasks 1/2"}}}}}}),
       pod("ps", 0, {{"phase", "Running"}}), pod("worker", 0, {{"phase", "Running"}}),
       pod("worker", 1, unschedulable()),
       json{{"metadata", {{"name", "other"}, {"labels", {{"app", "elasticdl-audit"}}}}}}});
  auto const jobs = summarise(list);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].status == "Running");
  CHECK(jobs[0].progress == "tasks 1/2");
  CHECK(jobs[0].workers == 1);
  CHECK(jobs[0].workers_wanted == 4);
  CHECK(jobs[0].servers == 1);
  CHECK(jobs[0].servers_wanted == 2);
  json scaled = list;
  scaled[0]["metadata"]["annotations"]["elasticdl/num-workers"] = "9";  // which nobody has answered
  scaled[0]["metadata"]["annotations"]["elasticdl/size"] = "workers=6,servers=1";
  CHECK(summarise(scaled)[0].workers_wanted == 6);
  CHECK(summarise(scaled)[0].servers_wanted == 1);
  scaled[0]["metadata"]["annotations"]["elasticdl/waits"] = "for 2 workers since 40 s";
  CHECK(summarise(scaled)[0].waits == "for 2 workers since 40 s");
  // A master that is away between two of its lives.
  json const killed{{"state", {{"terminated", {{"exitCode", 137}}}}}};
  scaled[0]["status"]["containerStatuses"] = json::array({killed});
  CHECK(summarise(scaled)[0].status == "Restarting");
  CHECK(has(summarise(scaled)[0].reason, "exit code 137"));
  scaled[0]["status"] = waiting("CrashLoopBackOff", "back-off 40s restarting failed container");
  scaled[0]["status"]["phase"] = "Running";
  CHECK(summarise(scaled)[0].status == "Restarting");
  CHECK(has(summarise(scaled)[0].reason, "back-off 40s"));
  scaled[0]["status"]["phase"] = "Succeeded";
  CHECK(summarise(scaled)[0].status == "Finished");
  CHECK(summarise(json::array({list[1]}))[0].status == "Orphaned");
}

TEST_CASE("explain tells what waits now, and what happened before, the oldest first") {
  json const disrupted{{"type", "DisruptionTarget"},
                       {"status", "True"},
                       {"reason", "PreemptionByScheduler"},
                       {"message", "default-scheduler: preempting"},
                       {"lastTransitionTime", "2026-11-20T10:00:02Z"}};
  json const list =
      json::array({pod("master", 0, {{"phase", "Running"}}), pod("worker", 4, unschedulable()),
                   pod("worker", 1, {{"phase", "Running"}, {"conditions", json::array({disrupted})}})});
  json const events = json::array(
      {event("worker-4", "Scheduled", "2026-11-20T10:00:00Z"),
       event("worker-4", "WorkerRelaunched", "2026-11-20T10:00:05Z"),
       event("worker-0", "OutOfMemory", "2026-11-20T10:00:01Z", "Warning"),
       event("worker-4", "FailedScheduling", "", "Warning",
             {{"lastTimestamp", nullptr},
              {"eventTime", "2026-11-20T10:00:06.123456Z"},
              {"series", {{"count", 3}}}}),
       json{{"involvedObject", {{"kind", "Pod"}, {"name", "elasticdl-k-master"}}}, {"reason", "Other"}},
       json{{"involvedObject", {{"kind", "Job"}, {"name", "elasticdl-j-master"}}}, {"reason", "Other"}}});
  auto const all = read_events(events, "j", list);
  CHECK(all.size() == 4);
  auto const x = explain_pods("j", list, all);
  REQUIRE(x.now.size() == 1);
  CHECK(x.now[0].who == "worker-4");
  CHECK(has(x.now[0].text, "waits for room: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu;"));
  CHECK(has(x.now[0].text, "--worker_resource_request"));
  REQUIRE(x.before.size() == 4);
  CHECK(has(x.before[0].text, "used more memory than its limit"));
  CHECK(has(x.before[1].text, "must go: PreemptionByScheduler"));
  CHECK(has(x.before[2].text, "a worker was replaced"));
  CHECK(has(x.before[3].text, "(3 times)"));
  CHECK(explain_pods("j", list, all, true).before.size() == 5);
}

TEST_CASE("a kubelet's Failed is not the job's, and no name is left open") {
  json const pull = event(
      "worker-0", "Failed", "2026-11-20T10:00:00Z", "Warning",
      {{"message", "Failed to pull image \"mnist:2\": not found"}, {"source", {{"component", "kubelet"}}}});
  json const of_job = event("master", "Failed", "2026-11-20T10:00:01Z", "Warning",
                            {{"message", "all workers failed"}, {"source", {{"component", "edl-master"}}}});
  auto const x =
      explain_pods("j", json::array(), read_events(json::array({pull, of_job}), "j", json::array()));
  REQUIRE(x.before.size() == 2);
  CHECK(has(x.before[0].text,
            "its image cannot be pulled: Failed: Failed to pull image \"mnist:2\": not found;"));
  CHECK(has(x.before[1].text,
            "the job failed: Failed: all workers failed; `edl logs j --role=master` shows why"));
}

TEST_CASE("what an older job of the same name has left is not told of this one") {
  auto const of = [](std::string const& who, std::string const& uid, std::string const& at) {
    return event(who, "Killing", at, "Normal", {{"involvedObject", {{"uid", uid}}}, {"message", uid}});
  };
  json const events = json::array(
      {of("master", "old", "2026-11-20T10:00:10Z"),  // while the new one was there
       of("worker-0", "old-0", "2026-11-20T09:59:00Z"), of("master", "new", "2026-11-20T10:00:20Z"),
       of("worker-0", "new-0", "2026-11-20T10:00:30Z"), of("worker-1", "gone", "2026-11-20T10:00:40Z"),
       of("worker-2", "old-2", "2026-11-20T10:00:01Z"),
       of("worker-2", "old-2", "2026-11-20T10:00:50Z")});  // it ends late
  json master = pod("master", 0, {{"phase", "Running"}}), worker = pod("worker", 0, {{"phase", "Running"}});
  master["metadata"].update({{"uid", "new"}, {"creationTimestamp", "2026-11-20T10:00:05Z"}});
  worker["metadata"]["uid"] = "new-0";
  json late = worker;  // of the older job, and not gone yet
  late["metadata"].update({{"name", "elasticdl-j-worker-2"},
                           {"uid", "old-2"},
                           {"ownerReferences", json::array({json{{"uid", "old"}}})}});
  CHECK(own_pods(json::array({late, master, worker})) == json::array({master, worker}));
  CHECK(summarise(json::array({late, master, worker})).at(0).workers == 1);
  CHECK(own_pods(json::array({late})).size() == 1);
  auto const uids = [](std::vector<happening> const& all) {
    std::string text;
    for (happening const& h : all) text += h.uid + " ";
    return text;
  };
  CHECK(uids(read_events(events, "j", json::array({master, worker}))) == "new new-0 gone ");
  CHECK(uids(read_events(events, "j", json::array())) == "new new-0 gone ");  // the last of that name
}

TEST_CASE(
    "a container that is being made waits for what was said of it last; probes at both ends are usual") {
  json creating = pod("worker", 0, waiting("ContainerCreating", ""));
  creating["metadata"]["uid"] = "u";
  creating["spec"]["nodeName"] = "n1";
  auto const now = [&](json const& events) {
    auto const x =
        explain_pods("j", json::array({creating}), read_events(events, "j", json::array({creating})));
    REQUIRE(x.now.size() == 1);
    return x.now[0].text;
  };
  json const mount = event("worker-0", "FailedMount", "2026-11-20T10:00:01Z", "Warning",
                           {{"involvedObject", {{"uid", "u"}}}, {"message", "MountVolume.SetUp failed"}});
  json const pulling = event("worker-0", "Pulling", "2026-11-20T10:00:02Z", "Normal",
                             {{"involvedObject", {{"uid", "u"}}}, {"message", "Pulling image \"m:1\""}});
  CHECK(has(now(json::array({mount})), "a volume cannot be mounted: FailedMount: MountVolume.SetUp failed"));
  CHECK(has(now(json::array({mount, pulling})), "its image is being pulled"));
  CHECK(has(now(json::array()), "is being created on node n1"));
  creating["spec"].erase("nodeName");
  CHECK(has(now(json::array()), "waits for the scheduler"));

  json master = pod("master", 0, {{"phase", "Running"}});
  master["metadata"]["uid"] = "m";
  auto const probes = [&] {
    json events = json::array();
    for (char const* what : {"Startup", "Readiness", "Liveness"})
      events.push_back(
          event("master", "Unhealthy", "2026-11-20T10:00:01Z", "Warning",
                {{"involvedObject", {{"uid", "m"}}}, {"message", std::string(what) + " probe failed"}}));
    json const all = json::array({master});
    return explain_pods("j", all, read_events(events, "j", all)).before.size();
  };
  CHECK(probes() == 1);  // a master that runs and does not answer
  master["status"]["containerStatuses"] =
      json::array({{{"name", "main"}, {"state", {{"running", {{"startedAt", "2026-11-20T09:00:05Z"}}}}}}});
  auto const ready = [&](char const* status, char const* since) {
    master["status"]["conditions"] =
        json::array({{{"type", "Ready"}, {"status", status}, {"lastTransitionTime", since}}});
  };
  ready("False", "2026-11-20T09:00:01Z");  // it comes up
  CHECK(probes() == 1);
  ready("True", "2026-11-20T10:00:02Z");  // it has come up since
  CHECK(probes() == 1);
  ready("True", "2026-11-20T09:00:10Z");  // it has answered for an hour
  CHECK(probes() == 2);
  ready("False", "2026-11-20T10:00:02Z");  // and does so no more
  CHECK(probes() == 2);
  master["status"]["phase"] = "Succeeded";
  CHECK(probes() == 0);
  master["status"]["phase"] = "Running";
  master["metadata"]["annotations"]["elasticdl/waits"] = "for a server";
  CHECK(explain_pods("j", json::array({master}), {}).now.at(0).text == "waits: for a server");
}

TEST_CASE("times and ages") {
  CHECK(*parse_time("2026-11-20T10:39:01.5Z") - *parse_time("2026-11-20T10:39:00Z") == 1500ms);
  for (char const* none : {"", "2026-11-20", "2026-13-20T10:39:00Z", "2026-11-20T10:39:00", "yesterday"})
    CHECK_FALSE(parse_time(none));
  CHECK(age(33s) == "33s");
  CHECK(age(119s) == "119s");
  CHECK(age(123s) == "2m3s");
  CHECK(age(20min) == "20m");
  CHECK(age(5h + 7min) == "5h7m");
  CHECK(age(30h) == "30h");
  CHECK(age(75h) == "3d3h");
  CHECK(age(-5s) == "0s");
}

}  // namespace pods_test
