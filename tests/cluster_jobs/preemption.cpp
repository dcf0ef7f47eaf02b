// SPDX-License-Identifier: Apache-2.0
// Tutorial "cloud", step by step: priorities, preemption by a deployment, and growing back.
#include "cluster_job.hpp"

namespace preemption_test {

using namespace cluster_job;

namespace {

lab::options small_cluster() {
  auto o = usual();
  o.nodes = {{.name = "node", .cpu = "14", .memory = "64Gi"}};
  o.images["nginx:1.27"] = {.programs = {}, .entrypoint = {"sleep", "600"}};
  return o;
}

void create_priority(lab::cluster& c, std::string const& name, int value) {
  c.post("/apis/scheduling.k8s.io/v1/priorityclasses", {{"apiVersion", "scheduling.k8s.io/v1"},
                                                        {"kind", "PriorityClass"},
                                                        {"metadata", {{"name", name}}},
                                                        {"value", value},
                                                        {"globalDefault", false}});
}

json nginx(int replicas) {
  json const cpu{{"cpu", "2"}, {"memory", "64Mi"}};
  json const container{{"name", "nginx"},
                       {"image", "nginx:1.27"},
                       {"imagePullPolicy", "Never"},
                       {"resources", {{"limits", cpu}, {"requests", cpu}}}};
  json const pod{{"priorityClassName", "high"},
                 {"terminationGracePeriodSeconds", 1},
                 {"containers", json::array({container})}};
  json const labels{{"app", "nginx"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", {{"name", "test-nginx"}}},
          {"spec",
           {{"replicas", replicas},
            {"selector", {{"matchLabels", labels}}},
            {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod}}}}}};
}

int running_workers(laboratory& it) {
  int n = 0;
  for (auto const& [name, phase] : it.pods()) n += name.starts_with("worker-") && phase == "Running";
  return n;
}

}  // namespace

TEST_CASE(
    "a deployment of higher priority takes workers' places; the job goes on with the rest and grows back") {
  laboratory it(small_cluster());
  create_priority(it.cluster, "high", 1000000);
  create_priority(it.cluster, "low", 1000);
  auto const submitted =
      it.train({"--distribution_strategy=ParameterServerStrategy", "--num_ps_pods=2", "--num_workers=4",
                "--num_epochs=12", "--master_resource_request=cpu=2,memory=64Mi",
                "--worker_resource_request=cpu=2,memory=64Mi", "--ps_resource_request=cpu=2,memory=64Mi",
                "--master_pod_priority=high", "--ps_pod_priority=high", "--worker_pod_priority=low",
                "--grace_seconds=5"},
               held);
  INFO(submitted.text);
  REQUIRE(submitted.code == 0);
  for (char const* worker : {"worker-0", "worker-1", "worker-2", "worker-3"})
    REQUIRE(it.says(worker, "joined the job"));

  it.cluster.post("/apis/apps/v1/namespaces/default/deployments", nginx(3));
  CHECK(it.cluster.wait([&] { return running_workers(it) == 1; }, 60s));
  // Those that are to take their places wait for room.
  CHECK(it.cluster.wait(
      [&] {
        auto const all = it.pods();
        return all.contains("worker-4") && all.contains("worker-5") && all.contains("worker-6");
      },
      60s));
  CHECK(it.says("master", "cannot start yet: Unschedulable"));
  CHECK(it.pods().at("master") == "Running");
  CHECK(it.pods().at("ps-0") == "Running");
  CHECK(it.pods().at("ps-1") == "Running");

  it.cluster.call("PATCH", "/apis/apps/v1/namespaces/default/deployments/test-nginx/scale",
                  {{"spec", {{"replicas", 0}}}});
  CHECK(it.cluster.wait([&] { return running_workers(it) == 4; }, 60s));
  it.check_exact(12);
}

}  // namespace preemption_test
