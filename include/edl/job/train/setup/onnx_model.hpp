// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/base/checkpoint/other_model.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// Throws error, before the training, if --export_onnx would fail: a layer cannot be exported,
/// --export_preprocess finds more than arithmetic, the file cannot be created, or it would replace a link or
/// a file that is not an ONNX model. Returns a line for each given flag without effect.
std::vector<std::string> check_onnx(program const& p, job const& j);

/// Writes the evaluated form of the model at `from` (as for `configure`) as an ONNX model to --export_onnx,
/// according to the other flags, and returns a sentence about it. Throws error.
std::string export_onnx(program const& p, job const& j, std::string const& from, logger const& log);

/// The model's variables in a checkpoint or a file, including one written by `export_onnx`. The program must
/// outlive it.
checkpoint::other_model open_other_model(program const& p, std::string const& path);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/onnx_model.ipp"
#endif
