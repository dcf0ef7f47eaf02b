// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/autoscaler/cluster_view.hpp"

namespace edl::controller {

/// Objects of an API server as the autoscaler sees them. What is absent, or of another type than the API
/// promises, is as if empty. Thread safety: safe.

/// What decides where a pod may be, from a PodSpec: of a pod, or of a template. Requests are what the
/// scheduler counts: containers and sidecars together, or the largest init container where that is more, and
/// the overhead.
pod_shape read_shape(nlohmann::json const& pod_spec, std::string const& space = {});

/// A Node, without its labels. It takes pods where it is ready and not cordoned.
node read_node(nlohmann::json const& object);

/// Labels of an object.
std::map<std::string, std::string> labels_of(nlohmann::json const& object);

/// Whether a node's kubelet has been lost: it is not known to be ready.
bool lost(nlohmann::json const& node_object);

/// What a node is short of: "MemoryPressure, DiskPressure".
std::string pressure(nlohmann::json const& node_object);

/// Whether a pod waits for a node, and more room could be what it needs. A pod that is held by a gate, lacks
/// a volume or fits no node at all does not.
bool wants_room(nlohmann::json const& pod);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/cluster_reading.ipp"
#endif
