// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/label_set.hpp"

namespace edl::controller {

/// The pods that a term of an affinity between pods means: those of some namespaces that its LabelSelector
/// selects. A selector of namespaces counts as all namespaces: their labels are not known here. Thread
/// safety: distinct objects: safe. Shared objects: safe to read.
class pod_selector {
 public:
  /// `text`: made by `text_of`.
  explicit pod_selector(std::string const& text);

  /// Equal terms have equal texts. `space`: the namespace of the pod whose term it is.
  static std::string text_of(nlohmann::json const& term, std::string const& space);

  bool selects(std::string const& space, label_set const& labels) const;

 private:
  std::vector<std::string> spaces_;  ///< none: all
  std::vector<requirement> lines_;   ///< all must hold
  bool selects_any_ = false;         ///< false: there is no selector
};

/// Whether a label with this value (null: there is none of that key) holds the line.
bool holds(requirement const& line, std::string const* value);

/// Lines of `matchExpressions` or `matchFields`. An operator that the API does not know is as if `In`.
std::vector<requirement> read_requirements(nlohmann::json const& list);

/// The lines of required affinity (`podAffinity`) or anti-affinity (`podAntiAffinity`) in a pod's spec. What
/// is of another type than the API promises is as if absent.
std::vector<separation> read_separations(nlohmann::json const& pod_spec, char const* kind,
                                         std::string const& space);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/pod_selector.ipp"
#endif
