// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cluster_job.hpp"
#include "kubernetes/yaml.hpp"

/// Jobs that share a cluster: the controller, too, is a real process.
namespace cluster_job {

inline lab::options small_cluster(char const* cpu) {
  auto o = usual();
  o.nodes = {{.name = "node", .cpu = cpu, .memory = "64Gi"}};
  o.namespaces = {"default", "edl-system"};
  o.images["web:1"] = {.programs = {}, .entrypoint = {"sleep", "600"}};
  return o;
}

class shared_cluster : public laboratory {
 public:
  explicit shared_cluster(char const* cpu) : shared_cluster(small_cluster(cpu)) {}
  explicit shared_cluster(lab::options const& o, std::vector<std::string> flags = {})
      : laboratory(o), flags_(std::move(flags)) {
    cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 lab::read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-crd.yaml").at(0));
    cluster.post("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "edl"}}}});
    start_controller();
  }

  /// Another one, after this has been killed.
  void start_controller() {
    controller_.reset();
    std::vector<std::string> line{"--metrics_address=127.0.0.1:0", "--max_load=1", "--lease_duration=4",
                                  "--lease_renew_deadline=3", "--lease_retry=0.2"};
    line.insert(line.end(), flags_.begin(), flags_.end());
    controller_ = std::make_unique<job::run>(
        line, job::options{.env = {{"KUBECONFIG", cluster.kubeconfig()}}, .program = EDL_CONTROLLER});
  }
  void kill_controller() { ::kill(controller_->pid(), SIGKILL); }
  std::string log_of_controller() const { return controller_->log(); }

  /// Each pod takes one core. `slow`: microseconds for each record, until `release`.
  void submit(std::string const& name, int min, int max, int epochs, int slow,
              json const& change = json::object()) {
    json const like{
        {"spec",
         {{"terminationGracePeriodSeconds", 10},
          {"containers",
           {{{"name", "main"},
             {"image", "tiny:1"},
             {"imagePullPolicy", "Never"},
             {"env",
              {{{"name", "TINY_DELAY_US"}, {"value", std::to_string(slow)}},
               {{"name", "TINY_GATE"}, {"value", "/data/gate"}}}},
             {"volumeMounts", {{{"name", "data"}, {"mountPath", "/data"}}}},
             {"resources", {{"requests", {{"cpu", "1"}, {"memory", "64Mi"}}}}}}}},
          {"volumes",
           {{{"name", "data"},
             {"hostPath",
              {{"path", std::filesystem::path(job::data().training).parent_path().string()}}}}}}}}};
    json object{{"apiVersion", "elasticdl.org/v1alpha1"},
                {"kind", "TrainingJob"},
                {"metadata", {{"name", name}}},
                {"spec",
                 {{"model", "tiny"},
                  {"strategy", "ParameterServerStrategy"},
                  {"flags",
                   {"--training_data=/data/train", "--minibatch_size=32", "--num_minibatches_per_task=1",
                    "--num_epochs=" + std::to_string(epochs)}},
                  {"master", {{"template", like}}},
                  {"servers", {{"replicas", 1}, {"template", like}}},
                  {"workers", {{"min", min}, {"max", max}, {"template", like}}}}}};
    object["spec"].merge_patch(change);
    json const made = cluster.post(jobs, object);
    INFO(made.dump());
    REQUIRE(made.value("kind", "") == "TrainingJob");
  }

  bool becomes(std::function<bool()> const& what, std::chrono::milliseconds limit = 60s) {
    return cluster.wait(what, limit);
  }

  void check_exact_job(std::string const& name, int epochs) {
    std::string const log = cluster.log("default", "elasticdl-" + name + "-master");
    INFO(log);
    std::string const each = std::to_string(job::data_set::records);
    for (int e = 0; e < epochs; ++e)
      CHECK(job::accounts(log, e, each + " records in the data set, " + each + " counted once"));
  }

 private:
  std::vector<std::string> flags_;
  std::unique_ptr<job::run> controller_;
};

}  // namespace cluster_job
