// SPDX-License-Identifier: Apache-2.0
// A job in a queue of Kueue's: the controller and all pods are real processes beside doubles of the API
// server and of Kueue.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/kueue/kueue_double.hpp"
#include "cluster_job.hpp"
#include "kubernetes/yaml.hpp"

namespace queued_jobs_test {

using namespace cluster_job;
namespace kd = edl::controller::kueue_double;

namespace {

std::string const workloads = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads",
                  flavors = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
                  definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

json anything() { return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}; }

json definition(std::string const& plural, std::string const& kind, bool namespaced) {
  json version{{"name", "v1beta2"}, {"served", true}, {"storage", true}};
  version["schema"]["openAPIV3Schema"] = anything();
  if (namespaced) version["subresources"]["status"] = json::object();
  return {
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", {{"name", plural + ".kueue.x-k8s.io"}}},
      {"spec",
       {{"group", "kueue.x-k8s.io"},
        {"scope", namespaced ? "Namespaced" : "Cluster"},
        {"names", {{"plural", plural}, {"singular", plural.substr(0, plural.size() - 1)}, {"kind", kind}}},
        {"versions", json::array({version})}}}};
}

/// Kueue's scheduler beside the API server: reads all Workloads, decides, writes.
class kueue {
 public:
  kueue(lab::cluster& c, std::int64_t cpus) : cluster_(c), decides_(cpus), thread_([this] { run(); }) {}
  ~kueue() {
    stopped_ = true;
    thread_.join();
  }
  void change(std::function<void(kd::scheduler&, kd::server&)> const& what) {
    std::lock_guard const lock(mutex_);
    round(what);
  }

 private:
  void run() {
    while (!stopped_) {
      {
        std::lock_guard const lock(mutex_);
        round([](kd::scheduler& s, kd::server& on) { s.step(on); });
      }
      std::this_thread::sleep_for(20ms);
    }
  }
  void round(std::function<void(kd::scheduler&, kd::server&)> const& what) {
    kd::server now;
    json const list = cluster_.get(workloads);
    for (json const& w : list.value("items", json::array()))
      now.objects["default/" + w["metadata"]["name"].get<std::string>()] = w;
    auto const before = now.objects;
    what(decides_, now);
    for (auto const& [key, w] : now.objects)
      if (w["status"] != before.at(key).value("status", json())) {
        json status = w["status"];
        cluster_.call("PATCH", workloads + key.substr(7) + "/status",
                      {{"metadata", {{"resourceVersion", before.at(key)["metadata"]["resourceVersion"]}}},
                       {"status", std::move(status)}});
      }
  }

  lab::cluster& cluster_;
  std::mutex mutex_;
  kd::scheduler decides_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

lab::options with_queue() {
  auto o = usual();
  o.nodes = {{.name = "node", .cpu = "12", .memory = "64Gi"}};
  o.namespaces = {"default", "edl-system"};
  return o;
}

class queued : public laboratory {
 public:
  explicit queued(std::int64_t cpus) : laboratory(with_queue()) {
    cluster.post(definitions, lab::read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-crd.yaml").at(0));
    cluster.post(definitions, definition("workloads", "Workload", true));
    cluster.post(definitions, definition("resourceflavors", "ResourceFlavor", false));
    cluster.post(definitions, definition("workloadpriorityclasses", "WorkloadPriorityClass", false));
    cluster.post("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "edl"}}}});
    REQUIRE(cluster.wait([&] { return cluster.get(flavors).contains("items"); }));
    cluster.post(flavors, {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                           {"kind", "ResourceFlavor"},
                           {"metadata", {{"name", "spot"}}},
                           {"spec", {{"nodeLabels", json::object()}}}});
    queue = std::make_unique<kueue>(cluster, cpus);
    controller = std::make_unique<job::run>(
        std::vector<std::string>{"--metrics_address=127.0.0.1:0", "--max_load=1", "--lease_duration=1",
                                 "--lease_renew_deadline=0.7", "--lease_retry=0.1"},
        job::options{.env = {{"KUBECONFIG", cluster.kubeconfig()}}, .program = EDL_CONTROLLER});
  }

  std::unique_ptr<job::run> controller;
  std::unique_ptr<kueue> queue;

  void submit(std::string const& name, int max, int epochs, int slow, std::string const& checkpoints) {
    json container{{"name", "main"}, {"image", "tiny:1"}, {"imagePullPolicy", "Never"}};
    container["env"] = json::array({{{"name", "TINY_DELAY_US"}, {"value", std::to_string(slow)}}});
    container["volumeMounts"] = json::array({{{"name", "data"}, {"mountPath", "/data"}},
                                             {{"name", "checkpoints"}, {"mountPath", "/checkpoints"}}});
    container["resources"]["requests"] = {{"cpu", "1"}, {"memory", "64Mi"}};
    std::string const data = std::filesystem::path(job::data().training).parent_path().string();
    json like;
    like["spec"]["terminationGracePeriodSeconds"] = 10;
    like["spec"]["containers"] = json::array({container});
    like["spec"]["volumes"] = json::array({{{"name", "data"}, {"hostPath", {{"path", data}}}},
                                           {{"name", "checkpoints"}, {"hostPath", {{"path", checkpoints}}}}});
    json made{{"apiVersion", "elasticdl.org/v1alpha1"}, {"kind", "TrainingJob"}};
    made["metadata"] = {{"name", name}, {"labels", {{"kueue.x-k8s.io/queue-name", "q"}}}};
    made["spec"] = {{"model", "tiny"},
                    {"strategy", "ParameterServerStrategy"},
                    {"flags",
                     {"--training_data=/data/train", "--minibatch_size=32", "--num_minibatches_per_task=1",
                      "--checkpoint_dir=/checkpoints", "--num_epochs=" + std::to_string(epochs)}}};
    made["spec"]["master"]["template"] = like;
    made["spec"]["servers"] = {{"replicas", 1}, {"template", like}};
    made["spec"]["workers"] = {{"min", 1}, {"max", max}, {"template", like}};
    json const answer = cluster.post(jobs, made);
    INFO(answer.dump());
    REQUIRE(answer.value("kind", "") == "TrainingJob");
  }

  /// Pods that have not ended, and whether any Workload has quota.
  int pods() {
    int n = 0;
    json const list = cluster.get("/api/v1/namespaces/default/pods");
    for (json const& p : list["items"]) {
      std::string const phase = p["status"].value("phase", "");
      n += phase != "Succeeded" && phase != "Failed";
    }
    return n;
  }
  bool has_quota() {
    json const list = cluster.get(workloads);
    for (json const& w : list["items"])
      if (kd::scheduler::held_by(w) > 0) return true;
    return false;
  }
};

}  // namespace

TEST_CASE(
    "a queued job of real processes is evicted and goes on from its checkpoint; its quota stays until its "
    "last pod "
    "is gone") {
  job::scratch const checkpoints;
  queued it(5);
  it.submit("a", 6, 4, 3000, checkpoints / "");
  INFO(it.controller->log());
  REQUIRE(it.cluster.wait([&] { return it.running("a") == 3; }, 60s));  // of 6, by quota

  it.queue->change([](kd::scheduler& s, kd::server& on) {
    s.stopped = true;
    s.step(on);
  });
  bool freed_early = false;
  REQUIRE(it.cluster.wait(
      [&] {
        bool const quota = it.has_quota();
        freed_early |= !quota && it.pods() > 0;
        return !quota;
      },
      60s));
  CHECK_FALSE(freed_early);
  CHECK(it.pods() == 0);
  CHECK(it.cluster.wait([&] { return it.phase("a") == "pending"; }, 20s));

  it.queue->change([](kd::scheduler& s, kd::server&) { s.stopped = false; });
  CHECK(it.cluster.wait([&] { return it.phase("a") == "succeeded"; }, 180s));
  CHECK(it.status("a")["attempts"] == 1);
  CHECK(it.cluster.wait([&] { return !it.has_quota(); }, 20s));
  std::string const log = it.cluster.log("default", "elasticdl-a-master"),
                    each = std::to_string(job::data_set::records);
  INFO(log);
  CHECK(job::has(log, each + " records in the data set, " + each + " counted once"));
}

}  // namespace queued_jobs_test
