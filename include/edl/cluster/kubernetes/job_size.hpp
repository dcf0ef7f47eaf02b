// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace edl::kubernetes {

/// The requested numbers of workers and servers of a job, from the annotation `elasticdl/size` of its
/// master's pod: "workers=3,servers=2". Thread safety: distinct objects: safe. Shared objects: unsafe.
struct job_size {
  std::uint32_t workers = 0, servers = 0;
  friend bool operator==(job_size const&, job_size const&) = default;
};

std::string to_text(job_size const& size);

/// The size that a master's pod shows; empty if it shows none.
std::optional<job_size> shown_size(nlohmann::json const& master);

/// What the annotations `elasticdl/num-workers`, `elasticdl/num-ps-pods`, `elasticdl/leave` and
/// `elasticdl/why` of a master's pod request, as unchecked texts; empty: not requested.
struct requested_size {
  std::string workers, servers, leave = {}, why = {};
  bool empty() const { return workers.empty() && servers.empty(); }
  friend bool operator==(requested_size const&, requested_size const&) = default;
};
requested_size requested_size_of(nlohmann::json const& master);

/// The ids of `elasticdl/leave`: "3,5"; an empty text has none. Empty for an invalid list, or more than
/// 10,000 ids.
std::optional<std::vector<std::uint32_t>> ids_of(std::string const& text);

/// The annotation `elasticdl/short-nodes` of a master's pod, "n1=DiskPressure;n2=MemoryPressure": nodes, and
/// what each is short of. Ignores invalid parts.
std::map<std::string, std::string> short_nodes_of(nlohmann::json const& master);

/// The annotation `elasticdl/pool` of a pod; empty: it has none.
std::string pool_of(nlohmann::json const& pod);

/// Whether the annotation `elasticdl/suspend` of a master's pod is "true".
bool is_suspended(nlohmann::json const& master);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/job_size.ipp"
#endif
