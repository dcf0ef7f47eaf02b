// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "kubernetes/double.hpp"
#include "world/world.hpp"

namespace world {

/// A cluster in the world: a double of the API server with scheduler and kubelet, on the host "cluster",
/// whose pods are processes on hosts of their own, called as the pods. Controllers are processes on hosts of
/// their own, too. The volume "storage" is mounted as /storage everywhere. For the driver of a history.
class cluster {
 public:
  struct options {
    int nodes = 2;
    std::string cpu = "4";               ///< of a node; each pod takes 1
    int (*main)(int, char**) = nullptr;  ///< the model's program
    edl::testing::kubernetes::options more = {};
  };
  /// It is ready when this returns. `definition`: of TrainingJobs, read before the history.
  cluster(options const& o, nlohmann::json const& definition);
  cluster(cluster const&) = delete;

  edl::testing::kubernetes::cluster& api() const { return *api_; }
  pid server() const { return server_; }

  /// A controller, one of several perhaps: "controller-0" is on the host of that name.
  pid start_controller(int number, std::vector<std::string> more = {});

  struct training_job {
    std::string name = "j";
    int min = 1, max = 3, servers = 1;  ///< no servers: by all-reduce
    std::vector<std::string> flags{};
    std::map<std::string, std::string> environment{};
    int retries = 100;              ///< backoffLimit
    nlohmann::json spot = nullptr;  ///< of the spec; with it, masters and servers run on node-0
  };
  /// Throws std::runtime_error with the refusal.
  void submit(training_job const& j);
  static std::string path_of(std::string const& job);  ///< in the API
  nlohmann::json status(std::string const& job) const;
  std::string phase(std::string const& job) const;
  /// Names of pods with their phases; "Terminating" for those that end.
  std::map<std::string, std::string> pods() const;
  /// All of the node's processes are killed, and no pod is placed there until `there` again.
  void set_node(std::string const& node, bool there);
  std::string log(std::string const& pod) const { return api_->log("default", pod); }

 private:
  edl::testing::kubernetes::cluster* api_ = nullptr;
  pid server_ = 0;
};

/// The definition of TrainingJobs, from the manifests: for the program, before its first history.
nlohmann::json read_definition(std::string const& file);

}  // namespace world
