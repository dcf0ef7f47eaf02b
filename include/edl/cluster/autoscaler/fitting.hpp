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

namespace edl::controller {

/// Whether a scheduler may put a pod of this shape on this node, room apart. The node takes pods, its taints
/// (NoSchedule, NoExecute) are tolerated, and selector and required affinity hold.
bool allows(node const& on, pod_shape const& shape);

/// The room on every node, and the pods that may have it. It checks what Kubernetes' scheduler checks of
/// requests, pod slots, taints, selectors and required node affinity. It also checks required affinity and
/// anti-affinity between pods. Not looked at are preferences, volumes and spread constraints.
class fitting {
 public:
  /// With the room of all pods taken that have a node. Only these shapes and those of pods may be asked for.
  /// The view and the shapes must outlive it.
  fitting(cluster_view const& view, std::vector<pod_shape const*> const& shapes, double max_load);

  /// The number of an equal shape among those of the constructor. Throws std::out_of_range.
  int shape(pod_shape const& s) const { return shapes_by_value_.at(&s); }
  int nodes() const { return nodes_; }

  /// Of a pod of the view, by its index: its shape's number, and its node's index; -1: none that is known.
  int shape_of_pod(int pod) const { return pods_[std::size_t(pod)].shape; }
  int node_of_pod(int pod) const { return pods_[std::size_t(pod)].node; }

  /// The node of this name; -1: none.
  int node_called(std::string const& name) const;

  bool allowed(int shape, int node) const {
    char const known = classes_allowed_[std::size_t(shape) * classes_ + std::size_t(class_of_[node])];
    return known == unknown ? find_out(shape, node) : known;
  }

  /// Whether the room is there now; with `leaving`, or as soon as leaving pods have gone.
  bool fits(int shape, int node, bool leaving = false) const;

  /// How many of the shape have room there now, at most `most`.
  std::size_t how_many(int shape, int node, std::size_t most) const;

  /// Whether it would be there if these shapes left, each as often as it stands there.
  bool fits_without(int shape, int node, std::vector<int> const& gone, bool leaving) const;

  /// How much of the i-th resource that the shape needs would be missing on the node, if nobody left.
  /// `missing` has one entry for each; those that are covered are zero or less. False: it is not allowed
  /// there.
  bool missing(int shape, int node, bool leaving, std::vector<std::int64_t>& missing) const;

  /// Takes from `missing` what one of the shape `gone` would leave.
  void cover(int shape, int gone, std::vector<std::int64_t>& missing) const;

  /// The first node on which the shape fits now; -1: none. Fast when asked often.
  int first_fit(int shape);
  int first_fit_with_leaving(int shape) const;

  void take(int shape, int node);
  void give_back(int shape, int node);

  /// Whether one more of this shape leaves the headroom free, when those in `gone` have left.
  bool within_load(int shape, std::vector<int> const& gone = {}) const;

  /// Whether n more do.
  bool within_load(int shape, std::size_t n) const;

  /// Whether more is taken than the headroom allows, of something that this shape uses.
  bool overloaded(int shape) const;

  /// Whether any node takes pods of this shape, room apart.
  bool allowed_somewhere(int shape) const;

  /// What the cluster as a whole has too little of for all of `wanted` within the headroom, when `leaving`
  /// have left, too. Both say how often each shape stands there. "cpu 8, of which 3 are left"; empty: of
  /// nothing.
  std::string shortage(std::map<int, int> const& wanted, std::map<int, int> const& leaving) const;

  /// The largest part of any resource of the cluster that one such pod takes.
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

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/fitting.ipp"
#endif
