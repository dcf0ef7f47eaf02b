// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/label_set.hpp"
#include "edl/cluster/autoscaler/pod_selector.hpp"
#include "edl/cluster/autoscaler/shared.hpp"

namespace edl::controller {

/// Marks pods' shapes: which selectors, of all pods' affinities, match a pod's namespace and labels. Equal
/// pods share a shape. Most clusters have no such selector, and then this does nothing. Thread safety:
/// distinct objects: safe. Shared objects: unsafe.
class pod_marks {
 public:
  /// Must be called for each shape before the first `marked`.
  void look_at(autoscaler::pod_shape const& s);

  bool none() const { return selectors_.empty(); }

  autoscaler::shared<autoscaler::pod_shape> marked(autoscaler::shared<autoscaler::pod_shape> const& s,
                                                   std::string const& space,
                                                   autoscaler::label_set const& labels);

 private:
  std::map<std::string, autoscaler::pod_selector> selectors_;  ///< by their texts
  std::map<std::pair<autoscaler::pod_shape const*, std::vector<std::string>>,
           autoscaler::shared<autoscaler::pod_shape>>
      made_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/pod_marks.ipp"
#endif
