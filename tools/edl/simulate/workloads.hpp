// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "simulate/simulation.hpp"

namespace edl::simulate {

/// Whether jobs keep their global batch, or choose the one that gets them furthest.
enum class batch { fixed, changing };

/// A scenario in YAML: nodes, jobs, services (docs/simulate.md). Throws usage_error that names the file and
/// the field.
scenario read_scenario(std::string const& path);

/// The nodes of such a file alone.
std::vector<autoscaler::node> read_cluster(std::string const& path);

/// A workload of the Pollux artifact (name,time,application,num_replicas,batch_size), of applications
/// measured in `applications`/NAME. Jobs may be paused (min 0). Without nodes of its own: 16 of 4 GPUs.
/// Throws usage_error.
scenario read_pollux(std::string const& path, std::string const& applications, batch how);

/// The first `most` jobs of a log in the Philly format (timestamp,duration,num_gpus). Each may have from one
/// up to the GPUs that it had, and work that takes it its duration with all of them. Throws usage_error.
scenario read_philly(std::string const& path, std::size_t most);

/// Drawn: `jobs` that come within 8 hours, of very different lengths, and services with a daily load, for
/// `nodes` of 8 GPUs and 64 cores.
scenario generated(int nodes, int jobs, unsigned seed);

/// Nodes alike, with such amounts: {"nvidia.com/gpu", "4"}. Throws error when one is no quantity.
std::vector<autoscaler::node> alike(int count, std::string const& name,
                                    std::map<std::string, std::string> const& amounts);

/// Reads the first line: pollux, philly, or yaml.
std::string format_of(std::string const& path);

}  // namespace edl::simulate
