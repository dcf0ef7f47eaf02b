// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// Reads the frozen variables of a job's network with adapters, for a process that computes or exports:
/// --base_model, or of a job that does not train the one that its model names. Throws usage_error if it is
/// not given, or the network has no adapters, and error if it does not fit, or differs from the one with
/// which the adapters were trained.
void read_base(program& p, job const& j, logger const& log);

/// The same for the trained model at `path`, the result of `find_model`. That may also be a base itself, or
/// one with merged adapters, which then is the base, with adapters that add nothing.
void read_base_of(program& p, std::string const& path, logger const& log);

/// Whether the model at `path` is the base that has been read.
bool is_base(program const& p, std::string const& path);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/base_model.ipp"
#endif
