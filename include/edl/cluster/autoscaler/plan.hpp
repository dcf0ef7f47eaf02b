// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "edl/cluster/autoscaler/policy.hpp"

namespace edl::controller {

struct plan_options {
  policy who = policies().front();
  double max_load = 0.97;     ///< of the cluster's cpu and memory: the rest is headroom for services
  double noise = 0.05;        ///< relative error that measured speeds may have: it is to resize nobody
  double change_share = 0.1;  ///< of its time, at most, a job may stand still because its size changes
  bool move = false;          ///< also put workers that run on fewer nodes, where there is room for it. Who
                              ///< carries the plan out must start job_plan::moves on their nodes.
  double starvation_timeout = 600;  ///< seconds that a job waits before no job behind it is let in
  double promise = 120;  ///< seconds that free room is kept for a pod which the scheduler does not put there
  int expendable = -10;  ///< for pods of others with a lower priority than this no room is made
};

/// A worker that another takes over from, on a node where it has company. The new one is started first; the
/// old one is handed over when the new one works.
struct worker_move {
  std::string pod, node;
};

/// What becomes of one job.
struct job_plan {
  std::string uid;
  bool admitted = false;
  bool suspended = false;                  ///< as in the view: no room was looked for
  int workers = 0;                         ///< how many it shall have
  std::vector<std::string> leaving{};      ///< worker pods to hand over, by name; those without a node first
  std::vector<std::string> nodes{};        ///< where there is room for each new worker
  std::vector<std::string> fixed_nodes{};  ///< the same for job::fixed, when it is let in
  std::vector<worker_move> moves{};        ///< besides these
  std::string reason{};                    ///< one sentence for a person
};

/// Room that is kept for a pod of somebody else, until the scheduler puts it there.
struct reservation {
  std::string pod, node;
  double since = 0;  ///< seconds
};

struct plan {
  std::vector<job_plan> jobs{};             ///< as in the view
  std::vector<reservation> reservations{};  ///< to be handed back as pod::nominated and nominated_at
  std::optional<double> again_at{};  ///< when to ask again, because a job was left alone until then; seconds
  std::vector<std::string> hopeless{};  ///< pods of others for which there is no room, nor can any be made
};

}  // namespace edl::controller
