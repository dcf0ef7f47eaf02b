// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/cluster/kubernetes/training_job_status.hpp"

namespace edl::kubernetes {

/// The resource defined in k8s/trainingjob-crd.yaml.
inline constexpr std::string_view api_group = "elasticdl.org", api_version = "elasticdl.org/v1alpha1",
                                  training_job_kind = "TrainingJob", training_job_plural = "trainingjobs";

/// The controller of jobs that name none.
inline constexpr std::string_view this_controller = "elasticdl.org/edl-controller";

/// A pod template as compact JSON. `spec.containers` has at least one element. Empty: no template.
using template_text = std::string;

struct worker_range {
  std::uint32_t min = 1, max = 1;
  std::optional<std::uint32_t> replicas{};  ///< a size set by a person; min <= replicas <= max
};

/// Nodes with one price that are lost together: a zone's spot machines.
struct node_pool {
  std::string name;
  std::map<std::string, std::string> labels;  ///< of its nodes
  double usd_per_hour = 0;                    ///< for one worker
};

/// Where the workers of a job with a deadline may run. Masters and servers do not move.
struct spot_spec {
  std::vector<node_pool> pools;
  node_pool on_demand;           ///< named `on_demand_pool`
  double deadline = 0;           ///< seconds since 1970
  std::optional<double> budget;  ///< USD
};

/// Names that no pool of spot machines has: machines on demand; and none, while the job waits.
inline constexpr std::string_view on_demand_pool = "on-demand", no_pool = "none";

struct training_job_spec {
  bool suspend = false;
  std::string managed_by{this_controller};
  std::string command = "train";  ///< or evaluate, predict
  /// For --distribution_strategy: ParameterServerStrategy or AllreduceStrategy; Local is read as the latter.
  /// If empty, the number of servers decides.
  std::string strategy;
  std::string model;               ///< the program in the image
  std::vector<std::string> flags;  ///< flags of that program
  bool changing_batch = false;
  template_text master, server, worker;
  std::uint32_t servers = 0;
  worker_range workers;
  std::optional<std::uint64_t> active_deadline_seconds, ttl_seconds_after_finished;
  std::uint32_t backoff_limit = 3;
  std::optional<spot_spec> spot;
};

/// A TrainingJob as the controller stores it. Thread safety: distinct objects: safe. Shared objects: unsafe.
struct training_job {
  std::string space, name, uid, resource_version;  ///< `space`: the namespace
  std::int64_t generation = 0;
  std::string created,
      deleted;  ///< creationTimestamp, deletionTimestamp; `deleted` empty: it is not being deleted
  std::vector<std::string> finalizers;
  /// Without kubectl's annotation of its last `apply`, which repeats the whole object.
  std::map<std::string, std::string> labels, annotations;
  training_job_spec spec;
  training_job_status status;

  bool ours() const { return spec.managed_by == this_controller; }
  bool finished() const {
    return is_true(status, condition_type::succeeded) || is_true(status, condition_type::failed);
  }
};

/// "team/mnist".
std::string title(training_job const& job);

/// Reads an object of the API server, ignoring unknown fields. Enforces the resource's own rules, because the
/// server may have an older definition of the resource. Throws error, which names namespace/name, the field
/// and what is expected.
training_job read_training_job(nlohmann::json const& object);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/training_job.ipp"
#endif
