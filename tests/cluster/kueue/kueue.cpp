// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kueue/kueue.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cluster/kueue/kueue_job.hpp"

namespace kueue_test {

using namespace edl::controller;
using namespace edl::kueue;
using namespace edl::controller::kueue_double;
using nlohmann::json;

TEST_CASE("a job without the label is none of Kueue's") {
  cluster c(10);
  c.add("x", {.queue = ""});
  c.run(10);
  CHECK(c.server.objects.empty());
  CHECK_FALSE(c.at("x").last.queued);
  CHECK(c.at("x").workers == 4);
}

TEST_CASE("fewer may be admitted than were asked for") {
  cluster c(4);
  c.add("x", {.min = 2, .max = 8});
  c.run(10);
  CHECK(c.at("x").last.most_workers == 3u);
  CHECK(c.at("x").workers == 3);
  c.add("y", {.min = 2, .max = 8});
  c.run(10);
  CHECK_FALSE(c.at("y").last.may_run);
  CHECK(c.at("y").last.message.find("insufficient quota") != std::string::npos);
}

TEST_CASE("the size that a person has set is what is asked for; fewer give their quota back") {
  cluster c(10);
  auto& x = c.add("x", {.min = 1, .max = 8});
  c.run(10);
  CHECK(x.workers == 8);
  x.job.spec.workers.replicas = 3;
  c.run(20);
  CHECK(x.workers == 3);
  CHECK(c.kueue.used(c.server, "q") == 4000);
  // What was given back does not come again by itself.
  x.job.spec.workers.replicas = 6;
  c.run(10);
  CHECK(x.workers == 3);
  // Queued anew, the job is asked for as it is now.
  x.job.spec.suspend = true;
  c.run(20);
  CHECK(c.server.objects.empty());
  x.job.spec.suspend = false;
  c.run(20);
  CHECK(x.workers == 6);
}

TEST_CASE("an evicted job gives its quota back when its last pod is gone, and waits (kueue #15661)") {
  cluster c(5);
  auto& x = c.add("x", {.min = 1, .max = 4});
  c.run(10);
  REQUIRE(x.pods() == 5);
  c.add("high", {.min = 1, .max = 1, .priority = 10});
  int with_pods = 0;
  for (int i = 0; i < 30; ++i) {
    c.run(1);  // the invariants of `cluster` hold after each step: no pod without quota, no quota twice
    with_pods += x.pods() > 0 && !x.last.may_run;
  }
  CHECK(with_pods > 2);  // its pods took their time
  CHECK(c.at("high").pods() == 2);
  // What is left is admitted at once: it needs less than it had.
  CHECK(x.last.may_run);
  CHECK(x.workers == 2);
  json const w = c.object_of("x");
  CHECK(condition_true(w, "QuotaReserved"));
  CHECK(condition_true(w, "Requeued"));
  CHECK_FALSE(condition_true(w, "Evicted"));
}

TEST_CASE("an eviction's reason decides who queues the job again") {
  for (auto const& [reason, again] : {std::pair{"Preempted", true},
                                      {"AdmissionCheck", true},
                                      {"NodeFailures", true},
                                      {"PodsReadyTimeout", false},
                                      {"Deactivated", false},
                                      {"ClusterQueueStopped", false}}) {
    cluster c(5);
    auto& x = c.add("x", {});
    c.run(10);
    c.kueue.evict(c.server, c.key_of("x"), reason);
    while (c.kueue.used(c.server, "q") > 0) c.run_jobs(1);
    CHECK(x.pods() == 0);
    CAPTURE(reason);
    CHECK(condition_true(c.object_of("x"), "Requeued") == again);
    CHECK_FALSE(condition_true(c.object_of("x"), "QuotaReserved"));
    CHECK_FALSE(condition_true(c.object_of("x"), "Admitted"));
    CHECK_FALSE(c.object_of("x")["status"].contains("admission"));
    c.run(20);
    CHECK(x.pods() > 0);
  }
}

TEST_CASE("a Workload that is set inactive stops the job until it is active") {
  cluster c(5);
  auto& x = c.add("x", {});
  c.run(10);
  json w = c.object_of("x");
  w["spec"]["active"] = false;
  c.server.write(c.key_of("x"), w);
  c.run(20);
  CHECK(x.pods() == 0);
  CHECK(c.kueue.used(c.server, "q") == 0);
  CHECK(x.last.reason == "Deactivated");
  CHECK(x.last.message.find("set its spec.active to true") != std::string::npos);
  w = c.object_of("x");
  w["spec"]["active"] = true;
  c.server.write(c.key_of("x"), w);
  c.run(20);
  CHECK(x.pods() == 5);
}

TEST_CASE("a job that ends says so when its last pod is gone") {
  for (bool const good : {true, false}) {
    cluster c(5);
    auto& x = c.add("x", {});
    c.run(10);
    set_condition(x.job.status, {.type = good ? "Succeeded" : "Failed",
                                 .status = edl::kubernetes::truth::yes,
                                 .message = "All is done."});
    c.run(1);
    CHECK(x.pods() > 0);
    CHECK_FALSE(condition_true(c.object_of("x"), "Finished"));
    c.run(20);
    json const w = c.object_of("x");
    CHECK(condition_true(w, "Finished"));
    for (json const& one : w["status"]["conditions"])
      if (one["type"] == "Finished") {
        CHECK(one["reason"] == (good ? "Succeeded" : "Failed"));
        CHECK(one["message"] == "All is done.");
      }
    CHECK(w["metadata"]["finalizers"].empty());
    CHECK(c.kueue.used(c.server, "q") == 0);
  }
}

TEST_CASE("a Workload that somebody else has finished stops the job for good, and says how to go on") {
  cluster c(5);
  auto& x = c.add("x", {});
  c.run(10);
  json w = c.object_of("x");
  kueue_double::set_condition(w, "Finished", true, "ByHand");
  c.server.write(c.key_of("x"), w);
  c.unsafe = true;  // who does this takes the quota from under the pods
  c.run(20);
  CHECK(x.pods() == 0);
  CHECK(x.last.stalled);
  CHECK(x.last.message.find("delete it to queue the job again") != std::string::npos);
  c.server.apply(remove(*read_workload(c.object_of("x")), ""));
  c.run(20);
  CHECK(x.pods() == 5);
}

TEST_CASE("two jobs of one name in two namespaces have two Workloads (kueue #14435)") {
  cluster c(20);
  c.add("x", {.space = "a"});
  c.add("x", {.space = "b"});
  c.run(10);
  REQUIRE(c.server.objects.size() == 2);
  CHECK(c.object_of("x", "a")["metadata"]["ownerReferences"][0]["uid"] == "uid-of-a/x");
  c.kueue.evict(c.server, c.key_of("x", "a"), "Preempted");
  c.run_jobs(3);
  CHECK_FALSE(c.at("x", "a").last.may_run);
  CHECK(c.at("x", "b").last.may_run);
  CHECK(c.at("x", "b").pods() == 5);
}

TEST_CASE("what is asked for follows the job while it waits; pods that run are stopped first") {
  cluster c(5);
  c.kueue.stopped = true;
  auto& x = c.add("x", {});
  c.run(3);
  x.job.spec.workers.max = 2;
  x.job.labels[priority_label] = "high";
  c.priorities["high"] = 9;
  c.run(3);
  CHECK(c.object_of("x")["spec"]["podSets"][1]["count"] == 2);
  CHECK(c.object_of("x")["spec"]["priority"] == 9);
  CHECK(c.object_of("x")["spec"]["priorityClassRef"]["kind"] == "WorkloadPriorityClass");
  c.kueue.stopped = false;
  c.run(10);
  CHECK(x.pods() == 3);
  std::string const first = c.object_of("x")["metadata"]["uid"];
  x.job.spec.worker = template_of("edl:next", "2");
  c.run(2);
  CHECK(x.last.reason == "WorkloadOutOfDate");
  CHECK(x.pods() > 0);
  c.run(20);
  CHECK(x.pods() == 3);
  CHECK(c.object_of("x")["metadata"]["uid"] != first);
  CHECK(c.kueue.used(c.server, "q") == 5000);
}

TEST_CASE("without Kueue in the cluster, a job with a queue is held, and says why") {
  cluster c(5);
  c.served = false;
  c.add("x", {});
  c.run(3);
  CHECK(c.at("x").last.reason == "KueueNotServed");
  CHECK(c.at("x").last.stalled);
  CHECK(c.server.objects.empty());
}

TEST_CASE("no master is made before the flavor is known; a contradiction ends the Workload") {
  cluster c(5);
  c.kueue.flavor = "unknown";
  auto& x = c.add("x", {});
  c.run(5);
  CHECK(x.last.may_run);
  CHECK_FALSE(x.last.may_start);
  CHECK(x.pods() == 0);
  c.kueue.flavor = "spot";
  auto& y = c.add("y", {.queue = "other"});
  json pods = json::parse(y.job.spec.worker);
  pods["spec"]["nodeSelector"]["disk"] = "hdd";
  y.job.spec.worker = pods.dump();
  c.run(5);
  CHECK(y.pods() == 0);
  CHECK(y.last.stalled);
  CHECK(condition_true(c.object_of("y"), "Finished"));
  CHECK(c.kueue.used(c.server, "other") == 0);
}

TEST_CASE("admission checks: quota alone starts nothing") {
  cluster c(5);
  c.kueue.checks = true;
  auto& x = c.add("x", {});
  c.run(5);
  CHECK(x.pods() == 0);
  CHECK(x.last.reason == "AdmissionChecks");
  c.kueue.checks = false;
  c.run(10);
  CHECK(x.pods() == 5);
}

TEST_CASE("elastic: a job starts at its least size and grows by slices") {
  cluster c(6);
  auto& x = c.add("x", {.min = 1, .max = 8, .is_elastic = true});
  x.plan = 4;
  c.run(20);
  CHECK(x.workers == 4);
  CHECK(c.kueue.used(c.server, "q") == 5000);
  REQUIRE(c.server.objects.size() == 1);  // slices that were replaced are gone
  CHECK(c.server.objects.begin()->first == "team/tj-x-uid-of-x-2");
  x.plan = 2;
  c.run(20);
  CHECK(x.workers == 2);
  CHECK(c.kueue.used(c.server, "q") == 3000);
  // More than there is quota for: it gets what there is within a few requests.
  x.plan = 8;
  c.run(25);
  CHECK(x.workers == 5);
  CHECK(c.kueue.used(c.server, "q") == 6000);
}

TEST_CASE("elastic: an eviction in the middle of a growth strands nothing (kueue #15399)") {
  cluster c(7);
  auto& x = c.add("x", {.min = 1, .max = 10, .is_elastic = true});
  x.plan = 5;
  c.run(20);
  REQUIRE(x.workers == 5);
  x.plan = 10;
  c.run(5);  // a slice waits
  REQUIRE(c.server.objects.size() >= 2);
  c.kueue.stopped = true;
  c.run(30);
  CHECK(x.pods() == 0);
  REQUIRE(c.server.objects.size() == 1);
  CHECK(c.object_of("x")["spec"]["podSets"][1]["count"] == 1);  // what it needs to start
  c.kueue.stopped = false;
  c.kueue.quota = 2000;  // less than it had
  c.run(30);
  CHECK(x.workers == 1);
  c.kueue.quota = 7000;
  c.run(300);
  CHECK(x.workers == 6);
}

TEST_CASE("elastic: a slice is not made and taken back with each plan") {
  cluster c(4);
  auto& x = c.add("x", {.min = 1, .max = 10, .is_elastic = true});
  x.plan = 3;
  c.run(20);
  REQUIRE(x.workers == 3);
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) {
    x.plan = i % 2 ? 3 : 8;
    c.run(1);
    for (auto const& [key, w] : c.server.objects) names.insert(key);
  }
  CHECK(names.size() <= 3);
  x.plan = 3;
  c.run(60);
  CHECK(c.server.objects.size() == 1);
  CHECK(x.workers == 3);
}

TEST_CASE("elastic: pods go on while a slice that took over waits for admission checks") {
  cluster c(9);
  auto& x = c.add("x", {.min = 1, .max = 8, .is_elastic = true});
  x.plan = 2;
  c.run(20);
  REQUIRE(x.workers == 2);
  c.kueue.checks = true;
  x.plan = 5;
  c.run(20);
  CHECK(x.last.may_run);
  CHECK(x.workers == 2);
  c.kueue.checks = false;
  c.run(20);
  CHECK(x.workers == 5);
}

TEST_CASE("at any moment, with requests lost and views that are old: quota holds and every job runs at last" *
          doctest::test_suite("long")) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::minstd_rand random(seed);
    cluster c(8);
    c.lossy = &random;
    for (int i = 0; i < 4; ++i)
      c.add("j" + std::to_string(i),
            {.servers = i % 2u, .min = 1, .max = 5, .is_elastic = i % 2 == 1, .priority = int(random() % 3)});
    for (int round = 0; round < 120; ++round) {
      c.run(1);
      auto& x = c.at("j" + std::to_string(random() % 4));
      x.plan = 1 + random() % 5;
      std::string const key = c.key_of(x.job.name);
      switch (random() % 12) {
        case 0:
          x.job.spec.suspend = !x.job.spec.suspend;
          break;
        case 1:
          if (!key.empty() && condition_true(c.server.objects[key], "QuotaReserved"))
            c.kueue.evict(c.server, key, random() % 2 ? "Preempted" : "PodsReadyTimeout");
          break;
        case 2:
          if (!key.empty()) c.server.apply(remove(*read_workload(c.server.objects[key]), ""));
          break;
        case 3:
          c.kueue.stopped = !c.kueue.stopped;
          break;
        case 4:
          c.kueue.checks = !c.kueue.checks;
          break;
        case 5:
          x.job.spec.worker = template_of("edl:" + std::to_string(random() % 3), "1");
          break;
        case 6:
          if (!key.empty()) {
            c.server.objects[key]["spec"]["active"] = random() % 2 == 0;
          }
          break;
        default:
          break;
      }
    }
    // Quiet: everything that was done by hand is undone, and one after the other finishes.
    c.lossy = nullptr;
    c.kueue.stopped = c.kueue.checks = false;
    for (auto& [key, w] : c.server.objects) w["spec"]["active"] = true;
    for (auto& [key, x] : c.jobs) x.job.spec.suspend = false, x.plan = 5;
    std::set<std::string> done;
    for (int round = 0; round < 800 && done.size() < 4; ++round) {
      c.run(1);
      for (auto& [key, x] : c.jobs)
        if (x.workers >= 1 && x.last.may_run && !x.job.finished()) {
          set_condition(x.job.status, {.type = "Succeeded", .status = edl::kubernetes::truth::yes});
          done.insert(key);
        }
    }
    CHECK(done.size() == 4);
    c.run(60);
    CHECK(c.kueue.used(c.server, "q") == 0);
    for (auto const& [key, w] : c.server.objects)
      CHECK(w["metadata"].value("finalizers", json::array()).empty());
  }
}

TEST_CASE("a Workload that is admitted to nothing starts no pod") {
  cluster c(5);
  auto& x = c.add("x", {});
  c.run(1);
  json w = c.object_of("x");
  kueue_double::set_condition(w, "QuotaReserved", true, "Odd");
  kueue_double::set_condition(w, "Admitted", true, "Odd");
  w["status"].erase("admission");
  c.server.write(c.key_of("x"), w);
  c.run_jobs(3);
  CHECK_FALSE(x.last.may_start);
  CHECK(x.pods() == 0);
}

}  // namespace kueue_test
