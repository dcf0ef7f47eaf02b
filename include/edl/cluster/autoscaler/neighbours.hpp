// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"

namespace edl::autoscaler {

/// Which pods exclude each other, and which require each other: required anti-affinity between pods, in both
/// directions like the scheduler, and required affinity. Shapes are identified by their numbers. Leaving pods
/// count until they are gone.
class neighbours {
 public:
  neighbours() = default;
  neighbours(std::vector<node> const& nodes, std::vector<pod_shape const*> const& shapes);

  /// Whether the shape has or is affected by any affinity or anti-affinity.
  bool concerns(int shape) const { return !ties_.empty() && !ties_[std::size_t(shape)].empty(); }

  /// Whether the existing pods permit one of the shape on the node, after these shapes have left it.
  bool allow(int shape, int node, std::vector<int> const& gone = {}) const;

  /// Whether one of the shape excludes the next one from its node.
  bool alone(int shape) const;

  void add(int shape, int node) { count(shape, node, 1); }
  void remove(int shape, int node) { count(shape, node, -1); }

  /// The first node that is affected when one of the shape leaves this node.
  int first_freed(int shape, int node) const;

  /// The first node that becomes available to others when one of the shape comes to this node; -1: none.
  int first_opened(int shape, int node) const;

 private:
  struct tie {
    int term;
    bool avoids, joins, marked;  ///< the shape avoids or needs the term's mark, or carries it
  };
  struct domain {
    int first = 0;  ///< its first node
    int avoiding = 0, marked = 0;
  };

  void count(int shape, int node, int by);
  domain const* domain_of(int term, int node) const;

  std::vector<std::vector<tie>> ties_;        ///< by shape; empty when no shape has any
  std::vector<std::vector<int>> domain_of_;   ///< by term, then by node; -1: the node has no such label
  std::vector<std::vector<domain>> domains_;  ///< by term
  std::vector<int> marked_;                   ///< by term: pods anywhere that carry its mark
  std::vector<char> joined_;                  ///< by term: some shape needs its mark
};

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/neighbours.ipp"
#endif
