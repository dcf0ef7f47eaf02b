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
  // A step needs this many minibatches where servers average, or one per lane in a world.
  j.data.overfit_batches =
      std::max({1, j.processes.num_workers, j.training.use_async ? 1 : j.training.grads_to_wait});
  j.data.num_minibatches_per_task = 1;
  j.data.num_epochs = 1;
  j.data.max_step = 0;
  // The report contains what the log would say.
  if (j.log.log_level == severity::info && !j.log.verbose) j.log.log_level = severity::warning;
  j.evaluation.evaluation_steps = 0;
  if (j.data.validation_data.empty()) j.data.validation_data = j.data.training_data;
  j.checkpoints.checkpoint_dir = directory + "/checkpoints";
  j.checkpoints.checkpoint_steps = 0;
  j.outputs.output = directory + "/model";
  if (!j.outputs.export_onnx.empty()) j.outputs.export_onnx = directory + "/model.onnx";
  if (!j.compute.profile.empty()) j.compute.profile = directory + "/profile";
  if (!j.observe.tensorboard_log_dir.empty()) j.observe.tensorboard_log_dir = directory + "/tensorboard";
}

}  // namespace edl::train
