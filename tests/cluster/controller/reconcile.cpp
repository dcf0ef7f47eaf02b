// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/reconcile.hpp"

#include <doctest/doctest.h>

#include <set>

#include "cluster/autoscaler/world.hpp"
#include "edl/app/arguments.hpp"
#include "edl/cluster/controller/job_objects.hpp"

namespace reconcile_test {

using namespace world;

namespace {

constexpr char master[] = "elasticdl-a-master";

}  // namespace

TEST_CASE("a job is let in, started at its least size, grows into what is free, and ends") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 2, 6, 1);
  pass p;
  converge(c, p);
  CHECK(says(c, "Admitted") == "True Admitted");
  CHECK(says(c, "Running") == "True MasterRuns");
  CHECK(says(c, "Resizing") == "False AtSize");
  CHECK(says(c, "Reconciling") == "False Settled");
  CHECK(c.phase("a") == "running");
  CHECK(c.workers("a") == 6);
  CHECK(c.status("a")["workers"] == json{{"desired", 6}, {"running", 6}, {"pending", 0}});
  CHECK(c.status("a")["attempts"] == 1);
  c.ends(master, 0);
  converge(c, p);
  CHECK(c.phase("a") == "succeeded");
  CHECK(c.workers("a") == 0);
  CHECK(c.status("a").contains("completionTime"));

  // Its pods are collected, and another controller looks at it.
  REQUIRE(c.objects.contains(cluster::pod_path(master)));
  c.erase(cluster::pod_path(master));
  c.step();
  CHECK_FALSE(c.objects.contains(cluster::pod_path(master)));
  pass fresh;
  converge(c, fresh);
  CHECK(c.phase("a") == "succeeded");
  CHECK(c.created.size() == 1);
}

TEST_CASE("a job that ended while no controller ran stays ended, though its pod is collected at once") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 2);
  pass p;
  converge(c, p);
  c.ends(master, 0);
  c.erase(cluster::pod_path(master));
  c.step();
  pass fresh;
  converge(c, fresh);
  CHECK(c.phase("a") == "succeeded");
  CHECK(c.created.size() == 1);
  CHECK_FALSE(c.objects.contains(cluster::pod_path(master)));
}

TEST_CASE("an attempt that fails is counted once, and the next begins when its pods have gone") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 2, 4, 1);
  c.change_spec("a", {{"backoffLimit", 1}});
  pass p;
  converge(c, p);
  c.ends(master, 1);
  p.work(c);
  CHECK(c.status("a")["attempts"] == 2);
  CHECK(says(c, "Running") == "False AttemptFailed");
  CHECK(c.workers("a") == 0);
  CHECK(c.created.size() == 1);
  converge(c, p);
  CHECK(c.phase("a") == "running");
  CHECK(c.status("a")["attempts"] == 2);
  CHECK(c.objects.at(cluster::pod_path(master))["metadata"]["annotations"][attempt_annotation] == "2");
  CHECK(c.status("a").value("restarts", 0) == 0);
  c.ends(master, 1);
  converge(c, p);
  CHECK(says(c, "Failed") == "True BackoffLimitExceeded");
  CHECK(c.created.size() == 2);
  CHECK(c.workers("a") == 0);
  CHECK(c.objects.contains(cluster::pod_path(master)));  // for its log
}

TEST_CASE("a master that is taken away is replaced within its attempt, and its members stay") {
  cluster c;
  c.add_node("m", 1);  // for the master
  c.add_node("n", 10);
  c.add_job("a", 2, 4, 1);
  pass p;
  converge(c, p);
  auto const uid_of = [&] {
    return c.objects.at(cluster::pod_path("elasticdl-a-worker-0"))["metadata"]["uid"];
  };
  auto const before = uid_of();
  SUBCASE("killed") { c.ends(master, 137); }
  SUBCASE("deleted") { c.erase(cluster::pod_path(master)); }
  SUBCASE("its node is gone") {
    REQUIRE(c.objects.at(cluster::pod_path(master))["spec"]["nodeName"] == "m");
    c.lose_node("m");
  }
  SUBCASE("its node is lost, and its pod is being removed") {
    c.objects.at("/api/v1/nodes/m")["status"]["conditions"][0]["status"] = "Unknown";
    c.erase(cluster::pod_path(master));
    c.lose_node("m");
  }
  converge(c, p, 100);
  CHECK(c.phase("a") == "running");
  CHECK(c.status("a")["attempts"] == 1);
  CHECK(c.status("a")["restarts"] == 1);
  CHECK(c.created.size() == 2);
  CHECK(uid_of() == before);
}

TEST_CASE("a node is drained of a master and of all controllers: the next controller lets the pod go") {
  cluster c;
  c.add_node("m", 1);  // for the master
  c.add_node("n", 10);
  c.add_job("a", 2, 4, 1);
  {
    pass both;  // of them one acts
    converge(c, both);
  }
  json& drained = c.objects.at("/api/v1/nodes/m");
  drained["spec"]["unschedulable"] = true;
  drained["status"]["allocatable"]["cpu"] = "0";  // which is how this cluster's scheduler knows
  std::string const path = cluster::pod_path(master);
  REQUIRE(c.objects.at(path)["spec"]["nodeName"] == "m");
  json const uid = c.objects.at(path)["metadata"]["uid"];
  c.erase(path);
  for (int i = 0; i < 100; ++i) c.step();
  REQUIRE(c.objects.contains(path));  // who drains waits for it
  CHECK(c.objects.at(path)["metadata"]["uid"] == uid);
  pass next;
  converge(c, next, 100);
  CHECK(c.objects.at(path)["metadata"]["uid"] != uid);
  CHECK(c.objects.at(path)["spec"]["nodeName"] == "n");
  CHECK(c.phase("a") == "running");
  CHECK(c.status("a")["attempts"] == 1);
  CHECK(c.status("a")["restarts"] == 1);
  CHECK(c.created.size() == 2);
}

TEST_CASE("a job is suspended by its master, and goes on with the same attempt") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 2, 4, 1);
  pass p;
  converge(c, p);
  c.change_spec("a", {{"suspend", true}});
  p.work(c);
  CHECK(c.objects.at(cluster::pod_path(master))["metadata"]["annotations"][annotation::suspend] == "true");
  converge(c, p);
  CHECK(c.phase("a") == "suspended");
  CHECK(c.paths("/pods/").empty());
  CHECK(says(c, "Admitted") == "False Suspended");
  auto const used = c.status("a").value("activeSeconds", c.status("a").value("used", 0));
  CHECK(used > 0);
  c.change_spec("a", {{"suspend", false}});
  converge(c, p);
  CHECK(c.phase("a") == "running");
  CHECK(c.status("a")["attempts"] == 1);
  CHECK(c.status("a").value("restarts", 0) == 0);
  CHECK(c.workers("a") == 4);
}

TEST_CASE("a deadline counts while the job is active, and a finished job goes after its time") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 2);
  c.change_spec("a", {{"activeDeadlineSeconds", 30}, {"ttlSecondsAfterFinished", 20}});
  pass p;
  converge(c, p);
  CHECK(c.phase("a") == "running");
  c.now += 40;
  converge(c, p);
  CHECK(says(c, "Failed") == "True DeadlineExceeded");
  CHECK(c.paths("/pods/").empty());
  c.now += 30;
  converge(c, p);
  CHECK(c.objects.size() == 1);  // the node
}

TEST_CASE("jobs of one name in two namespaces have nothing to do with each other") {
  cluster c;
  c.add_node("n", 20);
  c.add_job("a", 1, 3);
  c.add_job("a", 2, 2, 1, "other");
  pass p;
  converge(c, p);
  CHECK(c.workers("a") == 3);
  CHECK(c.workers("a", "other") == 2);
  c.ends(master, 0);
  converge(c, p);
  CHECK(c.phase("a") == "succeeded");
  CHECK(c.phase("a", "other") == "running");
  CHECK(c.workers("a", "other") == 2);
}

TEST_CASE("a job that is made again under its name begins anew, when what is left of the old one has gone") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 2);
  pass p;
  converge(c, p);
  c.erase(cluster::job_path("a"), 0);
  c.add_job("a", 2, 2);
  converge(c, p, 200);
  CHECK(c.phase("a") == "running");
  CHECK(c.workers("a") == 2);
  CHECK(c.created.size() == 2);
  for (auto const& path : c.paths("elasticdl-a-"))
    if (path.find("/secrets/") == path.npos)
      CHECK(c.objects.at(path)["metadata"]["ownerReferences"][0]["uid"] ==
            c.objects.at(cluster::job_path("a"))["metadata"]["uid"]);
}

TEST_CASE("a name that is taken, and what the server refuses, are told with the way out and keep no room") {
  cluster c;
  c.add_node("n", 4);
  c.add_job("a", 2, 2);
  pass p;
  SUBCASE("a pod of another") {
    c.objects[cluster::pod_path(master)] =
        R"({"kind": "Pod", "metadata": {"name": "elasticdl-a-master", "namespace": "team",
      "uid": "x", "resourceVersion": "1"}, "spec": {}, "status": {"phase": "Running"}})"_json;
    converge(c, p, 20);
    CHECK(says(c, "Stalled") == "True NameTaken");
    c.add_job("b", 2, 2);
    p.work(c);
    converge(c, p, 20);
    CHECK(c.phase("b") == "running");  // the room of a job that cannot start is not kept
    c.ends("elasticdl-b-master", 0);
    c.objects.erase(cluster::pod_path(master));
    c.now += 30;
    converge(c, p, 300);
  }
  SUBCASE("a pod of an earlier TrainingJob of this name") {
    auto& there = c.objects[cluster::pod_path(master)] =
        R"({"kind": "Pod", "metadata": {"name": "elasticdl-a-master", "namespace": "team", "uid": "x",
      "resourceVersion": "1", "labels": {"elasticdl-replica-type": "master", "elasticdl-replica-index": "0"},
      "ownerReferences": [{"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "name": "a", "uid": "old",
        "controller": true}]}, "spec": {}, "status": {"phase": "Running"}})"_json;
    CHECK(there.is_object());
    p.work(c);  // the cluster collects it, because its owner is not there
    converge(c, p, 300);
  }
  SUBCASE("a template that is not valid") {
    c.refuse = [](std::string const& verb, std::string const& path) {
      if (verb == "create" && path.ends_with("/pods"))
        throw k8s::api_error(422, "Invalid", "spec.x is not valid", "spec.x is not valid");
    };
    converge(c, p, 20);
    CHECK(says(c, "Stalled") == "True Refused");
    c.add_job("b", 2, 2);
    c.refuse = nullptr;
    p.work(c);
    converge(c, p, 20);
    CHECK(c.phase("b") == "running");
    c.ends("elasticdl-b-master", 0);
    c.now += 200;
    converge(c, p, 300);
  }
  CHECK(c.phase("a") == "running");
  CHECK(says(c, "Stalled").starts_with("False"));
}

TEST_CASE(
    "a master that crashes soon after every start is replaced a few times, then its attempt has failed") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 1);
  c.change_spec("a", {{"backoffLimit", 0}});
  pass p;
  converge(c, p);
  for (int crashes = 1; crashes <= 4; ++crashes) {
    c.ends(master, 139);
    for (int i = 0; i < 3; ++i) {
      converge(c, p, 50);
      c.now += 50;
    }
    CHECK(c.phase("a") == "running");
    CHECK(c.created.size() == std::size_t(crashes + 1));
  }
  c.ends(master, 139);
  converge(c, p);
  CHECK(c.phase("a") == "failed");
  CHECK(says(c, "Failed") == "True BackoffLimitExceeded");
}

TEST_CASE("a master that lived for long before it crashed is replaced without an end") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 1);
  c.change_spec("a", {{"backoffLimit", 0}});
  pass p;
  converge(c, p);
  for (int crashes = 0; crashes < 8; ++crashes) {
    c.now += 1000;
    c.ends(master, 139);
    converge(c, p);
    CHECK(c.phase("a") == "running");
  }
}

TEST_CASE("a job whose master's node is not heard does not run, though the API server still says so") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 1);
  pass p;
  converge(c, p);
  REQUIRE(says(c, "Running") == "True MasterRuns");
  c.silence_node("n");
  converge(c, p, 20);
  CHECK(says(c, "Running") == "False MasterLost");
}

TEST_CASE("a strict server that does not know restart rules gets masters without them") {
  cluster c;
  c.minor = 34;
  c.add_node("n", 10);
  c.add_job("a", 1, 2, 1);
  pass p;
  converge(c, p);
  CHECK(c.phase("a") == "running");
  CHECK_FALSE(c.objects.at(cluster::pod_path(master))["spec"]["containers"][0].contains("restartPolicy"));
}

TEST_CASE("a pod that the job needs and that the server refuses to its master stalls the job") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 2, 1);
  pass p;
  converge(c, p);
  json pod = c.objects.at(cluster::pod_path(master));
  CHECK(pod["metadata"]["annotations"][annotation::least] == "1");
  c.annotate(cluster::pod_path(master), annotation::missing, "ps-0 cannot be created yet: exceeded quota: q");
  converge(c, p);
  CHECK(says(c, "Stalled") == "True QuotaExceeded");
  c.annotate(cluster::pod_path(master), annotation::missing, nullptr);
  converge(c, p);
  CHECK(says(c, "Stalled").starts_with("False"));
}

TEST_CASE("a node that is short of something is told of once, until it is well again") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 1);
  pass p;
  converge(c, p);
  CHECK(p.notes.empty());
  auto const presses = [&](bool has) {
    c.set_condition("n", "DiskPressure", has);
    converge(c, p);
  };
  std::string const told =
      "NodePressure: node n, on which elasticdl-a-worker-0 runs, has DiskPressure: pods may be evicted from "
      "it";
  // The master hears of it, as long as it is so.
  auto const short_nodes = [&] {
    return c.objects.at(cluster::pod_path(master))["metadata"]["annotations"].value("elasticdl/short-nodes",
                                                                                    "");
  };
  presses(true);
  CHECK(p.notes == std::vector{told});
  CHECK(short_nodes() == "n=DiskPressure");
  presses(true);
  CHECK(p.notes == std::vector{told});
  presses(false);
  CHECK(short_nodes() == "");
  presses(true);
  CHECK(p.notes == std::vector{told, told});
}

TEST_CASE("a job that is made smaller while it has no master gets smaller") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 2, 6);
  pass p;
  converge(c, p);
  REQUIRE(c.workers("a") == 6);
  c.erase(cluster::pod_path(master), 0);
  c.change_spec("a", {{"workers", {{"replicas", 3}}}});
  converge(c, p);
  CHECK(c.workers("a") == 3);
  CHECK(says(c, "Resizing") == "False AtSize");
}

TEST_CASE("another controller's jobs are left alone") {
  cluster c;
  c.add_node("n", 4);
  c.add_job("a", 1, 1);
  c.change_spec("a", {{"managedBy", "somebody.else/x"}});
  pass p;
  converge(c, p, 20);
  CHECK(c.status("a").empty());
  CHECK(c.created.empty());
}

namespace {

/// What a cluster comes to by a history, whose controller is killed after its n-th request of the last act,
/// and followed by another.
struct history_of {
  std::string name;
  std::function<void(cluster&)> before, act;
};

std::vector<history_of> const histories{
    {"start", [](cluster&) {}, [](cluster& c) { c.add_job("a", 2, 4, 1); }},
    {"end", [](cluster& c) { c.add_job("a", 2, 4, 1); }, [](cluster& c) { c.ends(master, 0); }},
    {"failure", [](cluster& c) { c.add_job("a", 2, 4, 1); }, [](cluster& c) { c.ends(master, 1); }},
    {"kill", [](cluster& c) { c.add_job("a", 2, 4, 1); }, [](cluster& c) { c.ends(master, 137); }},
    {"eviction", [](cluster& c) { c.add_job("a", 2, 4, 1); },
     [](cluster& c) { c.erase(cluster::pod_path(master)); }},
    {"suspension", [](cluster& c) { c.add_job("a", 2, 4, 1); },
     [](cluster& c) { c.change_spec("a", {{"suspend", true}}); }},
    {"resumption",
     [](cluster& c) {
       c.add_job("a", 2, 4, 1);
       c.change_spec("a", {{"suspend", true}});
     },
     [](cluster& c) { c.change_spec("a", {{"suspend", false}}); }},
    {"scaling", [](cluster& c) { c.add_job("a", 2, 4, 1); },
     [](cluster& c) { c.change_spec("a", {{"workers", {{"replicas", 2}}}}); }},
    {"second job", [](cluster& c) { c.add_job("a", 2, 8); }, [](cluster& c) { c.add_job("b", 2, 8); }},
    {"deadline",
     [](cluster& c) {
       c.add_job("a", 2, 4, 1);
       c.change_spec("a", {{"activeDeadlineSeconds", 100}});
     },
     [](cluster& c) { c.now += 200; }},
    {"deletion", [](cluster& c) { c.add_job("a", 2, 4, 1); },
     [](cluster& c) { c.erase(cluster::job_path("a"), 0); }},
    {"time to live",
     [](cluster& c) {
       c.add_job("a", 2, 4, 1);
       c.change_spec("a", {{"ttlSecondsAfterFinished", 10}});
     },
     [](cluster& c) {
       c.ends(master, 0);
       c.now += 20;
     }},
    {"lost node", [](cluster& c) { c.add_job("a", 2, 4, 1); }, [](cluster& c) { c.lose_node("m"); }},
};

/// What must be alike at the end, whenever the controller was killed.
json outcome(cluster const& c) {
  json out = json::object();
  for (auto const& [path, o] : c.objects) {
    json& one = out[path];
    if (path.find("/trainingjobs/") != path.npos) {
      json const s = o.value("status", json::object());
      one = {{"phase", s.value("phase", "")},
             {"attempts", s.value("attempts", 0)},
             {"desired", s.value("/workers/desired"_json_pointer, 0)}};
    } else if (path.ends_with("-master")) {
      one = o["metadata"].value("/annotations/elasticdl.org~1attempt"_json_pointer, "");
    }
  }
  return out;
}

}  // namespace

TEST_CASE("a controller that is killed after any request is followed by one that goes on to the same end" *
          doctest::test_suite("long")) {
  for (history_of const& h : histories) {
    CAPTURE(h.name);
    auto const play = [&](int budget) {
      cluster c;
      c.add_node("m", 1);
      c.add_node("n", 10);
      pass first;
      h.before(c);
      converge(c, first, 100);
      auto const created = c.created.size();
      h.act(c);
      c.budget = budget;
      std::set<std::string> least;  // jobs that have had their least, and run
      auto const check = [&] {
        for (std::string const job : {"a", "b"}) {
          if (!c.objects.contains(cluster::job_path(job))) continue;
          std::string const phase = c.phase(job);
          if (phase == "running" && c.workers(job) >= 2) least.insert(job);
          bool const suspended = c.objects.at(cluster::job_path(job))["spec"].value("suspend", false);
          if ((phase == "running" || phase == "scaling") && !suspended && least.contains(job))
            CHECK_MESSAGE(c.workers(job) >= 2, job << " is below its min");
        }
      };
      bool killed_once = false;
      try {
        converge(c, first, 100, check);
      } catch (killed const&) {
        killed_once = true;
        least.clear();
      }
      c.budget = -1;
      pass second;
      converge(c, second, 400, check);
      return std::tuple(outcome(c), c.created.size() - created, killed_once);
    };
    auto const [expected, masters, never] = play(-1);
    int steps = 0;
    for (bool killed_once = true; killed_once && steps < 200; ++steps) {
      CAPTURE(steps);
      auto const [got, made, was] = play(steps + 1);
      killed_once = was;
      CHECK(json::diff(got, expected).dump() == "[]");
      CHECK(made == masters);
    }
    CHECK(steps > 1);
    MESSAGE(std::string(h.name) << ": " << steps - 1 << " requests");
  }
}

TEST_CASE("no command makes servers beside those of the spec") {
  for (char const* command : {"train", "evaluate", "predict"})
    for (int servers : {0, 2}) {
      CAPTURE(command);
      CAPTURE(servers);
      cluster c;
      json& made = c.add_job("a", 1, 2, servers);
      made["spec"]["command"] = command;
      std::string const data = command == std::string("train")      ? "training"
                               : command == std::string("evaluate") ? "validation"
                                                                    : "prediction";
      made["spec"]["flags"] = {"--" + data + "_data=/data", "--checkpoint_dir_for_init=/c"};
      auto words = spec_of(edl::kubernetes::read_training_job(made), 1).command;
      words.erase(words.begin());
      if (command == std::string("predict")) words.push_back("--prediction_outputs=/o");
      auto const parsed = edl::app::parse("mnist", words);
      REQUIRE(parsed.run);
      CHECK(parsed.run->job.processes.num_ps_pods == servers);
    }
}

TEST_CASE("who set a size is why the job has it, though the plan is older") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 3);
  pass p;
  converge(c, p);
  REQUIRE(c.workers("a") == 3);
  c.change_spec("a", {{"workers", {{"replicas", 2}}}});
  // The controller looks at the job before it has planned again.
  p.work_as_planned(c);
  json const newest = c.status("a")["scaleRecords"][0];
  CHECK(newest["to"] == 2);
  CHECK(newest["reason"] == "its owner set this size");
  json const told = c.objects.at(cluster::pod_path("elasticdl-a-master"))["metadata"]["annotations"];
  CHECK(told[annotation::why] == newest["reason"]);
}

TEST_CASE("a master whose image is on no node, and is never pulled, is stalled until it is there") {
  cluster c;
  c.add_node("n", 10);
  c.add_job("a", 1, 2);
  c.no_image = true;
  pass p;
  converge(c, p);
  CHECK(says(c, "Stalled") == "True ErrImageNeverPull");
  CHECK(c.phase("a") == "creating");
  c.no_image = false;
  converge(c, p);
  CHECK(says(c, "Stalled") == "False GoesOn");
  CHECK(c.phase("a") == "running");
}

TEST_CASE("what is wrong with a job is told by its fields, not by flags that it does not have") {
  cluster c;
  c.add_node("n", 10);
  json& made = c.add_job("a", 1, 2);
  made["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {{"cpu", "500m"}};
  pass p;
  converge(c, p);
  CHECK(says(c, "Stalled") == "True InvalidSpec");
  std::string const text = c.status("a").dump();
  INFO(text);
  CHECK(text.find("spec.workers.template's resources.limits") != text.npos);
  CHECK(text.find("--worker") == text.npos);
}

TEST_CASE("a missing account is told with the command that makes this one") {
  cluster c;
  c.add_node("n", 10);
  json& made = c.add_job("a", 1, 2);
  made["spec"]["master"]["template"]["spec"]["serviceAccountName"] = "trainer";
  c.refuse = [](std::string const& verb, std::string const& path) {
    if (verb == "create" && path.ends_with("/pods")) {
      std::string const text =
          "error looking up service account team/trainer: serviceaccount \"trainer\" not found";
      throw k8s::api_error(403, "Forbidden", text, text);
    }
  };
  pass p;
  converge(c, p);
  CHECK(says(c, "Stalled") == "True ServiceAccountMissing");
  std::string const text = c.status("a").dump();
  INFO(text);
  CHECK(text.find("`edl rbac --apply --namespace=team --service_account=trainer` makes it") != text.npos);
}

TEST_CASE("an Event's text is cut between characters") {
  edl::kubernetes::training_job j;
  j.name = "a", j.space = "team";
  std::string long_text(1023, 'x');
  json const event = event_of(j, {true, "Bad", long_text + "ü"}, 0, "1");
  CHECK(event["message"] == long_text);
  CHECK_NOTHROW(event.dump());
  CHECK_NOTHROW(event_of(j, {true, "Bad", "\xff"}, 0, "1").dump());
}

}  // namespace reconcile_test
