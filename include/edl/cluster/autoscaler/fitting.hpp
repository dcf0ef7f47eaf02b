// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/neighbours.hpp"

namespace edl::autoscaler {

/// Whether a scheduler may place a pod of this shape on this node, apart from room: the node accepts pods,
/// its taints (NoSchedule, NoExecute) are tolerated, and selector and required affinity match.
bool allows(node const& on, pod_shape const& shape);

/// The room on every node, and the pods that may use it. It checks requests, pod slots, taints, selectors and
/// required node affinity like Kubernetes' scheduler, and required affinity and anti-affinity between pods.
/// It ignores preferences, volumes and spread constraints.
class fitting {
 public:
  /// Subtracts the room of all pods that have a node. Only these shapes and those of pods may be queried. The
  /// view and the shapes must outlive it.
  fitting(cluster_view const& view, std::vector<pod_shape const*> const& shapes, double max_load);

  /// The number of an equal shape among those of the constructor. Throws std::out_of_range.
  int shape(pod_shape const& s) const { return shapes_by_value_.at(&s); }
  int nodes() const { return nodes_; }

  /// For a pod of the view, by its index: its shape's number, and its node's index; -1: unknown.
  int shape_of_pod(int pod) const { return pods_[std::size_t(pod)].shape; }
  int node_of_pod(int pod) const { return pods_[std::size_t(pod)].node; }

  /// The node of this name; -1: none.
  int node_called(std::string const& name) const;

  bool allowed(int shape, int node) const {
    char const known = classes_allowed_[std::size_t(shape) * classes_ + std::size_t(class_of_[node])];
    return known == unknown ? find_out(shape, node) : known;
  }

  /// Whether there is room now; with `leaving`, also once leaving pods have gone.
  bool fits(int shape, int node, bool leaving = false) const;

  /// How many of the shape have room there now, at most `most`.
  std::size_t how_many(int shape, int node, std::size_t most) const;

  /// Whether there would be room if these shapes left, each as often as listed.
  bool fits_without(int shape, int node, std::vector<int> const& gone, bool leaving) const;

  /// How much of each resource that the shape needs is missing on the node. `missing` has one entry for each;
  /// covered ones are zero or less. False: the shape is not allowed there.
  bool missing(int shape, int node, bool leaving, std::vector<std::int64_t>& missing) const;

  /// Subtracts from `missing` what one of the shape `gone` would free.
  void cover(int shape, int gone, std::vector<std::int64_t>& missing) const;

  /// The first node on which the shape fits now; -1: none. Fast for repeated calls.
  int first_fit(int shape);
  int first_fit_with_leaving(int shape) const;

  void take(int shape, int node);
  void give_back(int shape, int node);

  /// Whether one more of this shape leaves the headroom free, after those in `gone` have left.
  bool within_load(int shape, std::vector<int> const& gone = {}) const;

  /// Whether n more do.
  bool within_load(int shape, std::size_t n) const;

  /// Whether usage exceeds the headroom's limit for a resource that this shape uses.
  bool overloaded(int shape) const;

  /// Whether any node allows pods of this shape, apart from room.
  bool allowed_somewhere(int shape) const;

  /// The resources that the whole cluster lacks for all of `wanted` within the headroom, after `leaving` have
  /// left. Both map shapes to counts. "cpu 8, of which 3 are left"; empty: none.
  std::string shortage(std::map<int, int> const& wanted, std::map<int, int> const& leaving) const;

  /// The largest share of any resource of the cluster that one pod of this shape takes.
  double dominant_share(int shape) const { return needs_[std::size_t(shape)].share; }

 private:
  struct need {
    std::vector<std::pair<std::uint32_t, std::int64_t>> amounts;  ///< resource and amount, both positive
    double share = 0;
  };
  struct by_value {
    bool operator()(pod_shape const* a, pod_shape const* b) const { return *a < *b; }
  };

  struct pod_at {
    int shape, node;
  };
  static constexpr char unknown = 2;

  int add(pod_shape const& s);
  void read_nodes(cluster_view const& view, double max_load);
  void measure(pod_shape const& s);
  void read_pods(cluster_view const& view);
  bool find_out(int shape, int node) const;
  void note_taken(need const& n, double sign);
  void look_again(int first);

  /// Where room came back: of two entries the later one has the greater node. So the first entry after a
  /// time is the first node at which room came back since then.
  struct returned {
    std::uint64_t when;
    int node;
  };
  struct front {
    int node = 0;            ///< no node before it has room,
    std::uint64_t when = 0;  ///< as of then
  };

  int nodes_ = 0;
  std::size_t kinds_ = 0, classes_ = 0;
  std::map<std::string, std::uint32_t> kind_by_name_{{pod_slots, 0}};
  std::vector<std::int64_t> free_, leaving_;        ///< by node, then by resource
  std::vector<double> all_, taken_, allowed_load_;  ///< of the whole cluster, by resource
  std::vector<pod_shape const*> shapes_;
  std::vector<need> needs_;
  std::vector<front> first_;
  std::vector<returned> returned_;
  std::uint64_t now_ = 0;
  std::vector<int> class_of_;
  std::vector<node const*> example_;           ///< of each class of nodes that no shape can tell apart
  mutable std::vector<char> classes_allowed_;  ///< by shape, then by class
  std::map<pod_shape const*, int, by_value> shapes_by_value_;
  std::unordered_map<std::string_view, int> node_by_name_;
  std::vector<pod_at> pods_;
  neighbours neighbours_;
};

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/fitting.ipp"
#endif
