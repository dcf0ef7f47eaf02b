// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/program.hpp"

namespace edl::train {

/// Throws error, before anything is trained, where --export_onnx could not be done: a layer of the network
/// cannot be exported, or there is no directory for the file.
void check_onnx(program const& p, std::string const& file);

/// Writes what a job evaluates of the model at `from`, as `configure` takes it, as an ONNX model to `file`,
/// and returns a sentence that says so. Throws error.
std::string export_onnx(program const& p, job const& j, std::string const& from, std::string const& file,
                        logger const& log);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/onnx_model.ipp"
#endif
