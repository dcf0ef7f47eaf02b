// SPDX-License-Identifier: Apache-2.0
// A controller, its jobs' pods and Kueue together.
#include <doctest/doctest.h>

#include <functional>

#include "cluster/kueue/kueue_world.hpp"

namespace kueue_control_test {

using namespace kueue_world;

namespace {

json master_of(cluster const& c, std::string const& job = "a") {
  return c.objects.at(cluster::pod_path("elasticdl-" + job + "-master"));
}

}  // namespace

TEST_CASE("a queued job waits for Kueue, then runs on what it was assigned, up to what it was given") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.kueue.stopped = true;
  c.add_queued("a", 1, 8, 1);
  pass p;
  converge(c, p);
  CHECK(says(c, "Admitted") == "False Queued");
  CHECK(c.phase("a") == "pending");
  CHECK(c.created.empty());
  c.kueue.stopped = false;
  converge(c, p);
  CHECK(c.phase("a") == "running");
  CHECK(c.workers("a") == 3);
  json const pod = master_of(c);
  CHECK(pod["spec"]["nodeSelector"]["disk"] == "ssd");
  CHECK(pod["spec"]["tolerations"].size() == 1);
  json const member = c.objects.at(cluster::pod_path("elasticdl-a-worker-0"));
  CHECK(member["spec"]["nodeSelector"]["disk"] == "ssd");
  CHECK(condition_true(c.queue.objects.at(c.workload_of("a")), "PodsReady"));
  // The spec is the person's and is as it was.
  CHECK_FALSE(c.objects.at(cluster::job_path("a"))["spec"].contains("suspend"));

  c.ends("elasticdl-a-master", 0);
  converge(c, p);
  CHECK(c.phase("a") == "succeeded");
  CHECK(c.workload_of("a").empty());
  CHECK(c.kueue.used(c.queue, "q") == 0);
}

TEST_CASE("a queued job with pools of its own is refused, until one of them goes") {
  cluster c(5);
  c.add_node("n", 20);
  c.add_queued("a", 1, 2)["spec"]["spot"] = R"({"deadline": "2100-01-01T00:00:00Z", "onDemand":
      {"nodeSelector": {"pool": "od"}, "usdPerHour": 4}, "pools":
      [{"name": "b", "nodeSelector": {"pool": "b"}, "usdPerHour": 1}]})"_json;
  pass p;
  converge(c, p);
  CHECK(says(c, "Stalled") == "True InvalidSpec");
  CHECK(c.created.empty());
  c.change_spec("a", {{"spot", nullptr}});
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  converge(c, p);
  CHECK(says(c, "Stalled") == "False GoesOn");
  CHECK(c.phase("a") == "running");
}

TEST_CASE("a job of a queue takes no room from others before Kueue lets it in") {
  cluster c(100);
  c.add_node("n", 6);
  c.kueue.stopped = true;
  c.add_queued("a", 4, 4);
  c.add_job("b", 1, 9);
  pass p;
  converge(c, p);
  CHECK(c.workers("b") == 5);
  c.kueue.stopped = false;
  converge(c, p);
  CHECK(c.phase("a") == "pending");  // it has quota, and b cannot shrink so far that it has room
}

TEST_CASE(
    "an eviction suspends the job with a checkpoint, and another takes the quota when its pods are gone") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 4);
  pass p;
  converge(c, p);
  REQUIRE(c.workers("a") == 4);
  c.kueue.evict(c.queue, c.workload_of("a"), "Preempted");
  c.kueue_runs = false;
  p.work(c);
  CHECK(master_of(c)["metadata"]["annotations"].contains("elasticdl/suspend"));
  CHECK(condition_true(c.queue.objects.at(c.workload_of("a")), "QuotaReserved"));
  converge(c, p);
  CHECK(c.kueue.used(c.queue, "q") == 0);
  CHECK(says(c, "Admitted") == "False Queued");
  CHECK(says(c, "Suspended").substr(0, 5) == "False");
  c.kueue_runs = true;
  converge(c, p);
  CHECK(c.workers("a") == 4);
  CHECK(c.status("a")["attempts"] == 1);
}

TEST_CASE("a person suspends a queued job: its quota is given back, and it is queued again") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 4);
  pass p;
  converge(c, p);
  c.change_spec("a", {{"suspend", true}});
  converge(c, p);
  CHECK(c.phase("a") == "suspended");
  CHECK(c.queue.objects.empty());
  c.change_spec("a", {{"suspend", false}});
  converge(c, p);
  CHECK(c.phase("a") == "running");
}

TEST_CASE("a job that is deleted gives its quota back when its pods are gone") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 4);
  pass p;
  converge(c, p);
  // The node is lost, and its pods are given up one after the other, a worker last.
  c.lose_node("n");
  c.erase(cluster::job_path("a"));
  for (auto const& path : c.paths("/pods/")) {
    converge(c, p);
    CHECK(c.queue.objects.size() == 1);
    c.objects.erase(path);
  }
  converge(c, p);
  CHECK(c.queue.objects.empty());
}

TEST_CASE("an admin deletes the Workload of a job that runs: it is queued again, as often as that happens") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 4);
  pass p;
  converge(c, p);
  for (int times = 0; times < 3; ++times) {
    std::string const before = c.workload_of("a");
    REQUIRE_FALSE(before.empty());
    c.queue.apply(edl::kueue::remove(*edl::kueue::read_workload(c.queue.objects.at(before)), ""));
    converge(c, p);
    CHECK(c.workers("a") == 4);
    CHECK(c.queue.objects.size() == 1);
  }
  for (int times = 0; times < 3; ++times)
    for (bool const suspend : {true, false}) {
      c.change_spec("a", {{"suspend", suspend}});
      converge(c, p);
      CHECK(c.workers("a") == (suspend ? 0 : 4));
    }
}

TEST_CASE("a job whose priority class is missing is queued as soon as there is one") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 4)["spec"]["workers"]["template"]["spec"]["priorityClassName"] = "high";
  pass p;
  converge(c, p);
  CHECK(says(c, "Stalled") == "True NoPriorityClass");
  c.classes["high"] = {{"metadata", {{"name", "high"}, {"resourceVersion", "1"}}}, {"value", 7}};
  converge(c, p);
  CHECK(c.phase("a") == "running");
}

TEST_CASE("what the server refused before an eviction is asked for anew after it") {
  cluster c(5);
  c.add_node("n", 20);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  bool full = true;
  c.refuse = [&](std::string const& verb, std::string const& path) {
    if (full && verb == "create" && path.ends_with("/pods"))
      throw k8s::api_error(403, "Forbidden", "exceeded quota: q", "exceeded quota: q");
  };
  c.add_queued("a", 1, 4);
  pass p;
  converge(c, p, 10);
  CHECK(says(c, "Stalled") == "True QuotaExceeded");
  c.kueue.evict(c.queue, c.workload_of("a"), "PodsReadyTimeout");
  full = false;
  for (int i = 0; i < 100; ++i) {
    p.work(c);
    CHECK(says(c, "Admitted").find("NoRoom") == std::string::npos);  // nobody has looked for any
    c.step();
  }
  CHECK(c.phase("a") == "running");
}

TEST_CASE("managedBy another: nothing is asked of Kueue") {
  cluster c(5);
  c.add_node("n", 20);
  c.add_queued("a", 1, 4)["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  pass p;
  converge(c, p);
  CHECK(c.queue.objects.empty());
  CHECK(c.created.empty());
}

TEST_CASE("elastic: the job grows by slices as the autoscaler would have it, and shrinks for others") {
  cluster c(9);
  c.add_node("n", 8);
  c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
  c.add_queued("a", 1, 10, 0, true);
  pass p;
  converge(c, p);
  CHECK(c.workers("a") == 7);  // what the node has room for
  CHECK(c.kueue.used(c.queue, "q") == 8000);
  c.add_job("b", 3, 3);
  converge(c, p);
  CHECK(c.workers("b") == 3);
  CHECK(c.workers("a") == 3);
  CHECK(c.kueue.used(c.queue, "q") == 4000);
}

TEST_CASE("the controller is killed after any request of any change, and the next goes on to the same end" *
          doctest::test_suite("long")) {
  struct act {
    std::string name;
    std::function<void(cluster&)> before, then;
    int workers;
  };
  auto const plain = [](cluster& c) { c.add_queued("a", 1, 4, 1); };
  auto const elastic = [](cluster& c) { c.add_queued("a", 1, 4, 1, true); };
  act const acts[] = {
      {"start", [](cluster&) {}, plain, 4},
      {"start and grow by slices", [](cluster&) {}, elastic, 4},
      {"evict", plain, [](cluster& c) { c.kueue.evict(c.queue, c.workload_of("a"), "Preempted"); }, 4},
      {"evict an elastic one", elastic,
       [](cluster& c) { c.kueue.evict(c.queue, c.workload_of("a"), "PodsReadyTimeout"); }, 4},
      {"evict while it grows",
       [](cluster& c) {
         c.kueue.quota = 4000;
         c.add_queued("a", 1, 4, 1, true);
       },
       [](cluster& c) {
         c.kueue.quota = 6000;
         for (auto const& [key, w] : std::map(c.queue.objects))
           if (condition_true(w, "QuotaReserved")) c.kueue.evict(c.queue, key, "Preempted");
       },
       4},
      {"delete its Workload", plain,
       [](cluster& c) {
         c.queue.apply(
             edl::kueue::remove(*edl::kueue::read_workload(c.queue.objects.at(c.workload_of("a"))), ""));
       },
       4},
      {"scale down", plain, [](cluster& c) { c.change_spec("a", {{"workers", {{"replicas", 2}}}}); }, 2},
      {"end", plain, [](cluster& c) { c.ends("elasticdl-a-master", 0); }, 0},
      {"suspend", plain, [](cluster& c) { c.change_spec("a", {{"suspend", true}}); }, 0},
      {"delete", elastic, [](cluster& c) { c.erase(cluster::job_path("a")); }, 0},
  };
  for (act const& a : acts) {
    CAPTURE(a.name);
    for (int n = 1; n < 100; ++n) {
      CAPTURE(n);
      cluster c(6);
      c.add_node("n", 20);
      c.objects.at("/api/v1/nodes/n")["metadata"]["labels"]["disk"] = "ssd";
      auto p = std::make_unique<pass>();
      a.before(c);
      converge(c, *p, 300);
      a.then(c);
      c.budget = n;
      bool killed_once = false;
      for (int rounds = 0; rounds < 300; ++rounds) {
        auto const before = std::pair(c.objects, c.queue.objects);
        int done = 0;
        try {
          done = p->work(c);
        } catch (killed const&) {
          killed_once = true;
          c.budget = -1;
          p = std::make_unique<pass>();
          done = 1;
        }
        c.check();
        c.step();
        c.check();
        if (done == 0 && before == std::pair(c.objects, c.queue.objects) && p->again_at > c.now + 40) break;
      }
      CHECK(c.workers("a") == a.workers);
      CHECK(c.kueue.used(c.queue, "q") == (a.workers > 0 ? (a.workers + 2) * 1000 : 0));
      CHECK(c.queue.objects.size() <= 1);
      if (!killed_once) break;
      REQUIRE(n < 99);
    }
  }
}

}  // namespace kueue_control_test
