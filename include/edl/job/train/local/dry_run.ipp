// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/local/dry_run.hpp"

namespace edl::train {

EDL_INLINE dry_run_directory::dry_run_directory() {
  std::error_code failed;
  std::string const base = std::filesystem::temp_directory_path(failed).string();
  path_ = (failed ? "/tmp" : base) + "/edl-dry-run-XXXXXX";
  if (!::mkdtemp(path_.data()))
    throw error(fmt::format("--dry_run: cannot make a directory {}: {}; TMPDIR names another place", path_,
                            std::strerror(errno)));
}

EDL_INLINE dry_run_directory::~dry_run_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

EDL_INLINE void make_dry(job& j, std::string const& directory) {
  // Servers that average need so many minibatches for a step, and a world with lanes one for each.
  j.overfit_batches = std::max({1, j.num_workers, j.use_async ? 1 : j.grads_to_wait});
  j.num_minibatches_per_task = 1;
  j.num_epochs = 1;
  j.max_step = 0;
  // What it has to say stands in its report.
  if (j.log_level == severity::info && !j.verbose) j.log_level = severity::warning;
  j.evaluation_steps = 0;
  if (j.validation_data.empty()) j.validation_data = j.training_data;
  j.checkpoint_dir = directory + "/checkpoints";
  j.checkpoint_steps = 0;
  j.output = directory + "/model";
  if (!j.export_onnx.empty()) j.export_onnx = directory + "/model.onnx";
  if (!j.profile.empty()) j.profile = directory + "/profile";
  if (!j.tensorboard_log_dir.empty()) j.tensorboard_log_dir = directory + "/tensorboard";
}

}  // namespace edl::train
