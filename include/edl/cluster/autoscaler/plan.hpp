// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "edl/cluster/autoscaler/policy.hpp"

namespace edl::autoscaler {

struct plan_options {
  policy who = policies().front();
  double max_load = 0.97;     ///< of the cluster's cpu and memory: the rest is headroom for services
  double noise = 0.05;        ///< relative error of measured speeds, which must not cause a resize
  double change_share = 0.1;  ///< of its time, at most, a job may stand still because its size changes
  bool move = false;          ///< also put workers that run on fewer nodes, where there is room for it. Who
                              ///< carries the plan out must start job_plan::moves on their nodes.
  double starvation_timeout = 600;  ///< seconds that a job waits before no later job is admitted
  double promise = 120;  ///< seconds that free room is kept for a pod that the scheduler does not place there
  int expendable = -10;  ///< makes no room for other programs' pods below this priority
};

/// Replaces a worker by a new one on a node with others of its job. The new one starts first; the old one
/// hands over when the new one works.
struct worker_move {
  std::string pod, node;
};

/// The plan for one job.
struct job_plan {
  std::string uid;
  bool admitted = false;
  bool suspended = false;                  ///< as in the view: no room was sought
  int workers = 0;                         ///< the planned number
  std::vector<std::string> leaving{};      ///< worker pods to hand over, by name; those without a node first
  std::vector<std::string> nodes{};        ///< a node with room for each new worker
  std::vector<std::string> fixed_nodes{};  ///< the same for job::fixed, when it is let in
  std::vector<worker_move> moves{};        ///< besides these
  std::string reason{};                    ///< one sentence for the user
};

/// Room kept for another program's pod, until the scheduler places it there.
struct reservation {
  std::string pod, node;
  double since = 0;  ///< seconds
};

struct plan {
  std::vector<job_plan> jobs{};             ///< as in the view
  std::vector<reservation> reservations{};  ///< pass them back as pod::nominated and nominated_at
  std::optional<double> again_at{};     ///< when to plan again, because a job is spared until then; seconds
  std::vector<std::string> hopeless{};  ///< other programs' pods for which there is no room, nor can be made
};

}  // namespace edl::autoscaler
