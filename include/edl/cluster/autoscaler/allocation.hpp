// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/fitting.hpp"
#include "edl/cluster/autoscaler/plan.hpp"
#include "edl/cluster/autoscaler/policy.hpp"

namespace edl::autoscaler::detail {

/// A worker's claim to its room: by priority, then by the policy.
struct claim {
  int priority;
  double worth;
  auto operator<=>(claim const&) const = default;
};

/// The claim of a pod that has to get room.
inline constexpr claim everything{std::numeric_limits<int>::max(), std::numeric_limits<double>::infinity()};

struct worker {
  int node, shape;
  int pod;            ///< index in the view; -1: to be made
  bool soon = false;  ///< its room is free once leaving pods have gone
  int old = -1;       ///< the pod that it replaces, which keeps its room until then; -1: none
};

/// Why a job waits, or why a worker was taken from it.
struct cause {
  enum reason_code { none, no_room, behind_another, room_for_job, room_for_pod, headroom };
  reason_code reason = none;
  int subject = -1;  ///< the job or the pod, as an index in the view
};

/// A worker on its node.
struct tenant {
  int job, shape;
  auto operator<=>(tenant const&) const = default;
};

/// A job while a plan is made.
struct job_state {
  job_view const* job = nullptr;
  int shape = 0;
  claimant who{};
  int grows_to = 0;  ///< workers: more are not clearly useful
  bool in = false, cooling = false;
  std::vector<worker> before{}, workers{};
  std::vector<int> waiting{};      ///< its worker pods without a node, as indices
  std::vector<int> movers{};       ///< its pods without a node that will replace a worker
  std::vector<int> unmoved{};      ///< those of them that have no room any more
  std::vector<int> fixed_nodes{};  ///< for job::fixed, once admitted; -1: none yet
  cause why{};
  int count() const { return int(workers.size()); }
};

/// A change that can be undone.
struct step {
  int job;  ///< -1: a fixed pod
  worker moved;
  bool placed;
  cause why{};  ///< job_state::why before it
};

/// The assignment of room to jobs' workers while a plan is made. Begins with the view, without workers that
/// their jobs must not keep. Jobs are numbered as in the view. Not thread safe.
class allocation {
 public:
  allocation(cluster_view const& view, plan_options const& options);

  cluster_view const& view;
  plan_options const& options;
  fitting room;
  std::vector<job_state> jobs;
  std::vector<int> order, rank;           ///< jobs by priority and age, and each one's place in that order
  std::vector<int> others;                ///< other programs' pods without room yet, as indices
  std::vector<int> given_up;              ///< those that the scheduler did not place in their reserved room
  std::vector<reservation> reservations;  ///< room kept for other programs' pods
  std::vector<step> steps;                ///< since it was last cleared
  std::optional<double> again_at;         ///< when a spared job can be reconsidered; seconds

  /// Failed searches since the last change: a shape, and whether jobs were spared.
  std::map<std::pair<int, bool>, claim> failed;

  job_state& at(int j) { return jobs[std::size_t(j)]; }
  job_state const& at(int j) const { return jobs[std::size_t(j)]; }

  /// Jobs that have a worker above their min, by that worker's claim.
  std::set<std::pair<claim, int>> const& removable();

  /// The workers on the node, in no order.
  std::vector<tenant> const& on_node(int node) const { return on_node_[std::size_t(node)]; }

  /// The claim of the worker that comes when the job has n.
  claim next(job_state const& s, int n) const { return {s.job->priority, options.who.worth(s.who, n)}; }

  /// Whether the job is spared because it was resized recently; if so, sets `again_at`. A paused job has
  /// nothing to lose.
  bool frozen(job_state const& s);

  void place(int j, worker w);
  void place(int j, int node, int shape) { place(j, {node, shape, -1, !room.fits(shape, node)}); }
  void remove(int j, worker w);
  void remove(int j, worker w, cause why);

  /// Undoes `steps`.
  void take_back();

 private:
  void check() const;
  void read_jobs();
  void read_pods();
  void read_worker(int j, int pod);
  void put_in_order();
  void note(int j);

  std::vector<std::vector<tenant>> on_node_;
  std::set<std::pair<claim, int>> removable_;
  std::vector<std::optional<claim>> listed_;  ///< each job's place in removable_
  std::vector<int> changed_;                  ///< jobs whose place may have changed
  std::vector<char> noted_;                   ///< whether a job is in `changed_`
};

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/allocation.ipp"
#endif
