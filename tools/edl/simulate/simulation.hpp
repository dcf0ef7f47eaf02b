// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "simulate/work_model.hpp"

namespace edl::simulate {

/// A job that comes at a time and has work to do.
struct job_spec {
  std::string name;
  double submitted = 0;  ///< seconds from the start
  int priority = 0;
  int min = 1, max = 1;
  autoscaler::pod_shape worker{};
  std::vector<autoscaler::pod_shape> fixed{};  ///< master and servers
  std::shared_ptr<work_model const> work{};
};

/// A service whose number of pods follows its load.
struct service_spec {
  std::string name;
  autoscaler::pod_shape pod{};
  std::vector<std::pair<double, int>> load{};  ///< from this second on, so many pods; in order
};

struct scenario {
  std::vector<autoscaler::node> nodes{};
  std::vector<job_spec> jobs{};
  std::vector<service_spec> services{};
};

/// Where the scheduler puts a pod of all nodes that have the room.
enum class placing {
  spread,  ///< where the largest part of what the pod requests is free: Kubernetes' default
  pack     ///< where the least part is free
};

struct rules {
  autoscaler::plan_options plan{};  ///< with `move`, pods also go to the nodes that the plan has in mind
  placing scheduler = placing::spread;
  double decide_every = 60;       ///< seconds between plans
  bool decide_at_events = true;   ///< and whenever something happens, at most once a second
  double standstill = 1;          ///< seconds of training that a change of a job's workers costs
  double pod_start = 0;           ///< seconds from a node to ready
  double pod_stop = 0;            ///< seconds in which a pod that leaves holds its room
  double limit = 400 * 86'400.0;  ///< seconds after which the simulation gives up
};

struct job_outcome {
  std::string name;
  double submitted = 0, started = -1, completed = -1;  ///< seconds; -1: never
  int resizes = 0;
};

/// A change of a service's load upwards.
struct burst_outcome {
  std::string service;
  double at = 0;
  int from = 0, to = 0;
  double waited = -1;  ///< seconds until all pods were ready; -1: until the next change they were not
};

struct sample {
  double at = 0;
  int running = 0, waiting = 0, workers = 0;  ///< jobs, jobs, pods
  std::vector<double> used{};                 ///< by outcome::resources, of 1
};

struct outcome {
  std::string what_if{};  ///< a sentence that says what the controller does not do; empty: it does all of it
  std::vector<job_outcome> jobs{};
  std::vector<burst_outcome> bursts{};
  std::vector<double> service_waits{};  ///< of each pod of a service
  std::vector<std::string> resources{};
  std::vector<double> utilisation{};  ///< by resource, mean from the first submission to the last completion
  std::vector<sample> timeline{};
  int plans = 0;
  double end = 0;
};

/// Runs until all jobs are done and all loads are past. The same input gives the same outcome. Throws error
/// that names a job which can never be let in, or what is left at the limit.
outcome simulate(scenario const& what, rules const& by);

}  // namespace edl::simulate
