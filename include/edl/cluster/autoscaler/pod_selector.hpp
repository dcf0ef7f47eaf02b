// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/label_set.hpp"

namespace edl::autoscaler {

/// The pods of an affinity term: those in some namespaces that its LabelSelector selects. A namespace
/// selector counts as all namespaces, because their labels are not known here. Thread safety: distinct
/// objects: safe. Shared objects: safe to read.
class pod_selector {
 public:
  /// `text`: made by `text_of`.
  explicit pod_selector(std::string const& text);

  /// Equal terms have equal texts. `space`: the namespace of the term's pod.
  static std::string text_of(nlohmann::json const& term, std::string const& space);

  bool selects(std::string const& space, label_set const& labels) const;

 private:
  std::vector<std::string> spaces_;  ///< none: all
  std::vector<requirement> lines_;   ///< all must hold
  bool selects_any_ = false;         ///< false: no selector
};

/// Whether a label with this value (null: the key is missing) satisfies the line.
bool holds(requirement const& line, std::string const* value);

/// Lines of `matchExpressions` or `matchFields`. An unknown operator counts as `In`.
std::vector<requirement> read_requirements(nlohmann::json const& list);

/// The lines of required affinity (`podAffinity`) or anti-affinity (`podAntiAffinity`) in a pod's spec. A
/// value of the wrong type counts as absent.
std::vector<separation> read_separations(nlohmann::json const& pod_spec, char const* kind,
                                         std::string const& space);

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/pod_selector.ipp"
#endif
