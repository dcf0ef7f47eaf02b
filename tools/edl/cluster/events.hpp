// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::tool {

/// Something that the cluster, or the job's master, has to say of a job's pod.
struct happening {
  std::chrono::system_clock::time_point when, first;
  std::string when_text;  ///< as the server wrote it
  std::string who;        ///< "worker-3"
  std::string uid;        ///< of that pod; empty: not said
  std::string by;         ///< who says so: "kubelet", "edl-master"
  std::string reason, message;
  bool warning = false;
  int count = 1;
  std::uint64_t order = 0;  ///< of those within a second
};

/// The events of a job's pods, of those too that are gone, the oldest first. `pods`: those that there are.
/// What an older job of the same name has left is none of it.
struct history {
  std::vector<happening> list;
  std::string missing;  ///< why there are none, where the server does not show them
};
history events_of(cluster& c, std::string const& job, nlohmann::json const& pods,
                  edl::kubernetes::training_job const* above = nullptr);

/// The same, of an API server's list. `above`: the TrainingJob that the pods are of, whose own events are
/// among them, said of "job"; null: a plain job.
std::vector<happening> read_events(nlohmann::json const& items, std::string const& job,
                                   nlohmann::json const& pods,
                                   edl::kubernetes::training_job const* above = nullptr);

}  // namespace edl::tool
