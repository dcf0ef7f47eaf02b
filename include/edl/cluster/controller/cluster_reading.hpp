// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/autoscaler/cluster_view.hpp"

namespace edl::controller {

/// Translates objects of the API server into what the autoscaler needs. Treats a field that is absent, or
/// that has another type than the API promises, as empty. Thread safety: safe.

/// What a PodSpec, of a pod or of a template, says about where the pod may run. Computes requests as the
/// scheduler does: the sum of containers and sidecars, or the largest init container if that is more, plus
/// the overhead.
autoscaler::pod_shape read_shape(nlohmann::json const& pod_spec, std::string const& space = {});

/// Reads a Node, without its labels. A node accepts pods when it is ready and not cordoned.
autoscaler::node read_node(nlohmann::json const& object);

/// The labels of an object.
std::map<std::string, std::string> labels_of(nlohmann::json const& object);

/// Whether a node's kubelet counts as lost: the condition Ready is absent or not True.
bool lost(nlohmann::json const& node_object);

/// The resources that a node is short of: "MemoryPressure, DiskPressure".
std::string pressure(nlohmann::json const& node_object);

/// Whether a pod waits for a node and more room could help. A scheduling gate, a missing volume or
/// constraints that no node meets are not cured by room.
bool wants_room(nlohmann::json const& pod);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/cluster_reading.ipp"
#endif
