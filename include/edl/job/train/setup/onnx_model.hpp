// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/base/checkpoint/other_model.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// Throws error, before anything is trained, where --export_onnx could not be done: a layer of the network
/// cannot be exported, --export_preprocess finds more than arithmetic, the file cannot be made where it is to
/// be, or it would take the place of a link or of what is no ONNX model.
/// Returns a line for each flag that is given and will do nothing.
std::vector<std::string> check_onnx(program const& p, job const& j);

/// Writes what a job evaluates of the model at `from`, as `configure` takes it, as an ONNX model to
/// --export_onnx, as its other flags say, and returns a sentence that says so. Throws error.
std::string export_onnx(program const& p, job const& j, std::string const& from, logger const& log);

/// What of a model's variables stands in a checkpoint or a file, also in one that `export_onnx` has written.
/// The program outlives it.
checkpoint::other_model open_other_model(program const& p, std::string const& path);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/onnx_model.ipp"
#endif
