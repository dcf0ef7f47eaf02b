// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/label_set.hpp"
#include "edl/cluster/autoscaler/shared.hpp"

namespace edl::autoscaler {

/// The state of a cluster at one moment, as the autoscaler needs it. Plain values without behaviour, which a
/// controller fills from Nodes, Pods and TrainingJobs, and a simulator from its model. A view of 10,000 nodes
/// with 20,000 pods and 1,000 jobs needs less than 20 MB, because equal pods share a shape, and labels come
/// from a pool.

/// Amounts by the names of resources, in thousandths of their unit: cores, bytes, devices. `thousandths_of`
/// (core/quantity.hpp) reads Kubernetes' notation. A missing name means none.
using resources = std::map<std::string, std::int64_t>;

/// The number of pods on a node, as in its `allocatable`. Every pod takes one; a node without it has no
/// limit.
inline constexpr char pod_slots[] = "pods";

struct taint {
  std::string key, value, effect;
  auto operator<=>(taint const&) const = default;
};

/// An empty key tolerates every taint, an empty effect every effect; `exists` asks for no value.
struct toleration {
  std::string key, value, effect;
  bool exists = false;
  auto operator<=>(toleration const&) const = default;
};

/// One line of a node affinity. The key "metadata.name" means the node's name.
struct requirement {
  enum class relation { in, not_in, exists, does_not_exist, greater, less };
  std::string key;
  relation op = relation::in;
  std::vector<std::string> values{};
  auto operator<=>(requirement const&) const = default;
};

/// A line of a required affinity between pods. As anti-affinity: no pod with the mark may be on a node that
/// has the same value of the label `topology` as this pod's node. As affinity: one must be there, or, if
/// there is none anywhere, this pod has the mark itself. A mark is the text of a `pod_selector`.
struct separation {
  std::string mark, topology;
  auto operator<=>(separation const&) const = default;
};

/// The properties that determine on which nodes a pod may run. Requests are those that the scheduler counts:
/// containers and sidecars together, or the largest init container if that is more, and the overhead.
struct pod_shape {
  resources requests{};
  std::map<std::string, std::string> node_selector{};
  std::vector<std::vector<requirement>> affinity{};  ///< required: all lines of any term; no term: any node
  std::vector<toleration> tolerations{};
  std::vector<separation> apart{}, together{};
  std::vector<std::string> marks{};  ///< of those that any pod's lines name, those that select this pod
  auto operator<=>(pod_shape const&) const = default;
};

struct node {
  std::string name;
  resources allocatable{};
  label_set labels{};
  std::vector<taint> taints{};
  bool schedulable = true;  ///< ready, and not cordoned; if not, its existing pods still count
};

/// A pod that has not ended.
struct pod {
  std::string name;    ///< unique: with its namespace, or its uid
  std::string job{};   ///< uid of the job whose worker this is; empty: anything else, also master and servers
  std::string node{};  ///< empty: waiting for one
  std::string nominated{};  ///< the node that the latest plan promised it
  double nominated_at = 0;  ///< since when; seconds, on the clock of cluster_view::now
  std::string
      replaces{};  ///< the worker that leaves as soon as this one works; while it is there they count as one
  bool leaving = false;  ///< it is being deleted, and keeps its room until it is gone
  bool blocked = false;  ///< without a node for a reason other than room: a gate, a claim
  int priority = 0;      ///< of another program's pod: higher ones get room first
  shared<pod_shape> shape{};
};

/// A job's speed with a number of workers.
struct measured_speed {
  int workers = 0;
  double records_per_s =
      0;  ///< of useful work: where the batch may change, records of the first batch's worth
};

struct job_view {
  std::string uid;
  std::string name{};           ///< namespace/name, for the user
  int priority = 0;             ///< higher ones first
  int min = 1, max = 1;         ///< workers; with min 0 it may be paused
  std::optional<int> manual{};  ///< a size set by its owner, within min and max: counts as both
  pod_shape worker{};
  std::vector<pod_shape> fixed{};  ///< other required pods that do not exist yet: master, servers
  double submitted = 0;            ///< seconds, on the clock of cluster_view::now
  bool suspended = false;          ///< it requests nothing, and its pods leave
  std::string why_suspended{};     ///< the reason, as a sentence; empty: its owner suspended it
  bool admitted = false;           ///< an earlier plan admitted it
  int workers = 0;                 ///< the requested number
  std::vector<measured_speed> speeds{};
  std::optional<double> records_left{};
  double change_cost = 1;  ///< measured standstill of its training when its size changes, in seconds
  std::optional<double> last_resized{};  ///< seconds
};

struct cluster_view {
  double now = 0;  ///< seconds
  std::vector<node> nodes{};
  std::vector<pod> pods{};
  std::vector<job_view> jobs{};
};

}  // namespace edl::autoscaler
