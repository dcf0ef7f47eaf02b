// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/command_line.hpp"

namespace edl::tool {

/// The batch script of a job in Slurm, for `sbatch`: one batch job runs the master and the servers, and
/// submits the workers as a job array, so that Slurm may take away and requeue each worker alone. `line`:
/// that of `edl slurm`. Throws usage_error, also where the program's own command line is wrong, or has no
/// worker.
std::string slurm_script(words const& line);

/// `edl slurm`: prints it.
int slurm(words const& line);
std::vector<flag> slurm_flags();

}  // namespace edl::tool
