// SPDX-License-Identifier: Apache-2.0
// Whole jobs in a cluster, to their ends, and what may happen to them on the way.
#include <filesystem>
#include <fstream>

#include "cluster_job.hpp"

namespace jobs_test {

using namespace cluster_job;

namespace {

std::vector<std::string> servers_and_workers(int servers, int workers, std::vector<std::string> more = {}) {
  more.push_back("--distribution_strategy=ParameterServerStrategy");
  more.push_back("--num_ps_pods=" + std::to_string(servers));
  more.push_back("--num_workers=" + std::to_string(workers));
  return more;
}

constexpr int signal_of_kill = 9;

}  // namespace

TEST_CASE("a job runs in a cluster from its submission to its end, and shows how it does") {
  laboratory it;
  auto const submitted = it.train(
      servers_and_workers(2, 2, {"--num_epochs=2", "--evaluation_steps=20", "--validation_data=/data/test"}));
  INFO(submitted.text);
  REQUIRE(submitted.code == 0);
  it.check_exact(2);
  CHECK(job::has(it.log("master"), "Evaluation metrics[v="));
  for (char const* name : {"ps-0", "ps-1", "worker-0", "worker-1"}) CHECK(it.reaches(name, "Succeeded", 20s));
  auto const listed = it.edl({"get", "jobs"});
  INFO(listed.text);
  CHECK(listed.code == 0);
  CHECK(job::has(listed.text, "Finished"));

  auto const gone = it.edl({"delete", "j", "--wait"});
  INFO(gone.text);
  CHECK(gone.code == 0);
  CHECK(it.pods().empty());
  json const secrets = it.cluster.get("/api/v1/namespaces/default/secrets");
  CHECK(secrets.at("items").empty());
}

TEST_CASE(
    "all-reduce in a cluster: a deleted worker's place is taken by the next id, every record counts once") {
  // By the oldest server that edl works with, which refuses fields that it does not know.
  auto oldest = usual();
  oldest.minor = 29;
  laboratory it(oldest);
  REQUIRE(it.train({"--distribution_strategy=AllreduceStrategy", "--num_workers=3", "--num_epochs=2"}, held)
              .code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-worker-1");
  CHECK(it.reaches("worker-3", "Running"));
  it.check_exact(2);
  CHECK(it.has_reason("WorkerRelaunched"));
}

TEST_CASE("a deleted worker hands back what it has leased, and its successor is there before it has gone") {
  laboratory it;
  REQUIRE(it.train(servers_and_workers(1, 2, {"--num_epochs=2"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-worker-0");
  CHECK(it.reaches("worker-2", "Running"));
  CHECK(job::has(it.log("master"), "worker 0 is about to leave: it was deleted"));
  it.check_exact(2);
}

TEST_CASE("killed processes of every role: worker, server with a copy, master in place") {
  laboratory it;
  REQUIRE(it.train(servers_and_workers(2, 2, {"--num_epochs=3", "--ps_replicas=2"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.kill("default", "elasticdl-j-worker-1", signal_of_kill);
  CHECK(it.reaches("worker-2", "Running"));
  it.cluster.kill("default", "elasticdl-j-ps-1", signal_of_kill);
  CHECK(it.says("master", "ps-1 is started again"));
  CHECK(it.reaches("ps-1", "Running"));
  it.cluster.kill("default", "elasticdl-j-master", signal_of_kill);
  CHECK(it.says("master", "the previous master ended before its job: this one takes its place"));
  it.check_exact(3);
  std::string names;
  for (auto const& [name, phase] : it.pods()) names += name + " ";
  CHECK(names == "master ps-0 ps-1 worker-0 worker-1 worker-2 ");
}

TEST_CASE("out of memory: the successor of a worker, and of a server, gets twice as much; the log says so") {
  laboratory it;
  REQUIRE(
      it.train(servers_and_workers(1, 2, {"--num_epochs=3", "--worker_resource_request=cpu=1,memory=64Mi"}),
               held)
          .code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.out_of_memory("default", "elasticdl-j-worker-1");
  REQUIRE(it.reaches("worker-2", "Running"));
  auto const limit = [&](std::string const& pod) {
    return it.pod("elasticdl-j-" + pod)["spec"]["containers"][0]["resources"]["limits"]["memory"];
  };
  CHECK(limit("worker-2") == "128Mi");
  it.cluster.out_of_memory("default", "elasticdl-j-ps-0");
  CHECK(it.cluster.wait([&] { return limit("ps-0") == "8Gi"; }));
  CHECK(it.says("master", "worker-1 used more memory than its limit of 64Mi: its successors get 128Mi"));
  it.check_exact(3);
  CHECK(it.has_reason("OutOfMemory"));
}

TEST_CASE("the master out of memory: it goes on in its place, with more") {
  laboratory it;
  REQUIRE(
      it.train(servers_and_workers(1, 1, {"--num_epochs=3", "--master_resource_request=cpu=0.1,memory=64Mi"}),
               held)
          .code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.out_of_memory("default", "elasticdl-j-master");
  CHECK(it.says("master", "the master used more memory than its limit of 64Mi: it gets 128Mi"));
  CHECK(it.cluster.wait([&] {
    return it.pod("elasticdl-j-master")["spec"]["containers"][0]["resources"]["limits"]["memory"] == "128Mi";
  }));
  it.check_exact(3);
}

TEST_CASE("a job whose workers all fail ends with their reason") {
  laboratory it;
  REQUIRE(it.train(servers_and_workers(1, 2, {"--envs=TINY_FAILS=abort"})).code == 0);
  CHECK(it.reaches("master", "Failed"));
  CHECK(job::has(it.log("master"), "all workers failed"));
  CHECK(it.pod("elasticdl-j-master")["metadata"]["labels"]["status"] == "Failed");
}

TEST_CASE("an image that no node has: the submission says so") {
  laboratory it;
  auto const said = it.train(servers_and_workers(1, 1, {"--image_name=none:1"}));
  INFO(said.text);
  CHECK(said.code != 0);
  CHECK(job::has(said.text, "Container image \"none:1\" is not present with pull policy of Never"));
}

TEST_CASE("workers and servers are scaled while the job runs") {
  laboratory it;
  REQUIRE(it.train(servers_and_workers(1, 1, {"--num_epochs=20", "--ps_ranges=2"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  auto const grown = it.edl({"scale", "j", "--num_workers=3", "--num_ps_pods=2"});
  INFO(grown.text);
  CHECK(grown.code == 0);
  CHECK(it.reaches("worker-2", "Running"));
  CHECK(it.reaches("ps-1", "Running"));
  auto const refused = it.edl({"scale", "j", "--num_ps_pods=7"});
  CHECK(refused.code != 0);
  CHECK(job::has(refused.text, "--num_ps_pods=7"));
  // What was refused is forgotten, and the same question is answered again.
  for (int i = 0; i < 2; ++i) {
    auto const same = it.edl({"scale", "j", "--num_workers=2"});
    INFO(same.text);
    CHECK(same.code == 0);
    CHECK(job::has(same.text, "workers=2"));
  }
  json const annotations = it.pod("elasticdl-j-master")["metadata"]["annotations"];
  CHECK(annotations.value("elasticdl/size", "") == "workers=2,servers=2");
  CHECK_FALSE(annotations.contains("elasticdl/num-workers"));
  CHECK_FALSE(annotations.contains("elasticdl/num-ps-pods"));
  it.check_exact(20);
}

TEST_CASE("pods and logs of a finished job stay, though their node is slow to tell that they have ended") {
  lab::options slow = usual();
  slow.report_delay = 8s;
  laboratory it(std::move(slow));
  REQUIRE(it.train(servers_and_workers(1, 2, {"--num_epochs=4"}), held).code == 0);
  REQUIRE(it.says("master", "worker 0 joined"));
  REQUIRE(it.says("master", "worker 1 joined"));
  it.check_exact(4);
  for (char const* name : {"ps-0", "worker-0", "worker-1"}) {
    CAPTURE(name);
    INFO(it.log("master"));
    CHECK(it.reaches(name, "Succeeded"));
    CHECK_FALSE(it.log(name).empty());
  }
}

TEST_CASE("a worker that comes when the job is over has ended well, and its pod stays") {
  lab::options slow = usual();
  slow.report_delay = 8s;
  laboratory it(std::move(slow));
  auto const gate = std::filesystem::path(job::data().training).parent_path() / "late";
  REQUIRE(it.train(servers_and_workers(1, 2, {"--envs=TINY_LATE=/data/late"})).code == 0);
  CHECK(it.says("worker-0", "the job is over"));
  std::ofstream(gate) << "";
  CHECK(it.says("worker-1", "the job is over: it accepts no more members"));
  it.check_exact();
  CHECK(it.reaches("worker-1", "Succeeded"));
  std::filesystem::remove(gate);
}

TEST_CASE("a master that may not look after its pods says so, and what allows it") {
  std::string verb;
  SUBCASE("list") { verb = "list"; }
  SUBCASE("watch") { verb = "watch"; }
  SUBCASE("create") { verb = "create"; }
  lab::options o = usual();
  o.forbidden = {{verb, "pods", "default", "system:serviceaccount:default:default"}};
  laboratory it(std::move(o));
  auto const said = it.train(servers_and_workers(1, 1, {"--wait=true", "--num_epochs=100"}), held);
  INFO(said.text);
  CHECK(said.code == 1);
  CHECK(job::has(said.text, "cannot " + verb + " resource \"pods\""));
  CHECK(job::has(said.text, "`edl rbac --apply -n default --service_account=default` allows it"));
  auto const why = it.edl({"explain", "j"});
  INFO(why.text);
  CHECK(job::has(why.text, "edl rbac --apply"));
  auto const looked = it.edl({"doctor"});
  INFO(looked.text);
  CHECK(looked.code == 1);
  CHECK(job::has(looked.text, "service account 'default' may not: " + verb + " pods"));
  CHECK(job::has(looked.text, "edl rbac --apply"));
}

TEST_CASE("a node is drained: of a job only its master has no controller") {
  lab::options o = usual();
  o.nodes = {{.name = "a"}};
  laboratory it(std::move(o));
  REQUIRE(it.train(servers_and_workers(1, 2, {"--num_epochs=20"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  CHECK(job::has(it.cluster.drain("a", false), "override): default/elasticdl-j-master, continuing"));
  CHECK(it.reaches("worker-0", "Running"));
  CHECK(it.cluster.drain("a", true).empty());
  CHECK(it.cluster.wait([&] { return it.pods().empty(); }, 60s));
}

TEST_CASE("a kubelet that is dead for minutes: its worker trains on, and hands over once it is given up") {
  lab::options o = usual();
  o.nodes = {{.name = "near"}, {.name = "far"}};
  laboratory it(std::move(o));
  auto const cordon = [&](std::string const& node, bool yes) {
    it.cluster.call("PATCH", "/api/v1/nodes/" + node, {{"spec", {{"unschedulable", yes}}}});
  };
  cordon("far", true);
  REQUIRE(it.train(servers_and_workers(1, 1, {"--num_epochs=20"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  cordon("near", true);
  cordon("far", false);
  REQUIRE(it.edl({"scale", "j", "--num_workers=2"}).code == 0);
  REQUIRE(it.says("worker-1", "Loss = "));
  cordon("near", false);
  std::string const pod = "/api/v1/namespaces/default/pods/elasticdl-j-worker-1";
  REQUIRE(it.cluster.get(pod)["spec"]["nodeName"] == "far");

  it.cluster.silence("far", true);
  // After 40 s the control plane says that the pod is not ready, after five minutes it gives the pod up.
  json conditions = it.cluster.get(pod)["status"]["conditions"];
  for (json& c : conditions)
    if (c["type"] == "Ready") c["status"] = "False";
  it.cluster.call("PATCH", pod + "/status", {{"status", {{"conditions", conditions}}}});
  std::size_t const steps = job::count(it.log("worker-1"), "Loss = ");
  CHECK(job::eventually([&] { return job::count(it.log("worker-1"), "Loss = ") > steps; }));
  CHECK_FALSE(job::has(it.log("master"), "worker 1 is lost"));
  it.cluster.remove(pod);
  CHECK(it.says("master", "worker 1 is about to leave: it was deleted"));
  CHECK(it.reaches("worker-2", "Running"));
  it.check_exact(20);
  CHECK_FALSE(job::has(it.log("master"), "worker 1 is lost"));
  CHECK_FALSE(job::has(it.log("master"), "Going back"));
  CHECK(it.cluster.get(pod)["metadata"].contains("deletionTimestamp"));
  it.cluster.silence("far", false);
  CHECK(it.cluster.wait([&] { return !it.pods().contains("worker-1"); }));
}

TEST_CASE("the end of the master's pod is the end of the job's") {
  laboratory it;
  REQUIRE(it.train(servers_and_workers(1, 2, {"--num_epochs=20"}), held).code == 0);
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-master");
  CHECK(it.cluster.wait([&] { return it.pods().empty(); }, 60s));
}

}  // namespace jobs_test
