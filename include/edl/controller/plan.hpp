// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "edl/controller/policy.hpp"

namespace edl::controller {

struct plan_options {
  policy who = policies().front();
  double max_load = 0.97;     ///< of the cluster's cpu and memory: the rest is headroom for services
  double change_share = 0.1;  ///< of its time, at most, a job may stand still because its size changes
  bool move = true;           ///< when sizes change, also put workers that run on fewer nodes
  double patience = 600;      ///< seconds that a job waits before no job behind it is let in
};

/// What becomes of one job.
struct job_plan {
  std::string uid;
  bool admitted = false;
  int workers = 0;                         ///< how many it shall have
  std::vector<std::string> leaving{};      ///< worker pods to hand over, by name; those without a node first
  std::vector<std::string> nodes{};        ///< where there is room for each new worker
  std::vector<std::string> fixed_nodes{};  ///< the same for job::fixed, when it is let in
  std::string reason{};                    ///< one sentence
};

/// Room that is kept for a pod of somebody else, until the scheduler puts it there.
struct reservation {
  std::string pod, node;
};

struct plan {
  std::vector<job_plan> jobs{};             ///< as in the view
  std::vector<reservation> reservations{};  ///< to be handed back as pod::nominated
  std::optional<double> again_at{};  ///< when to ask again, because a job was left alone until then; seconds
  std::vector<std::string> hopeless{};  ///< pods for which shrinking makes no room
};

}  // namespace edl::controller
