// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/checkpoint/directory.hpp"
#include "edl/job/checkpoint/layout_digest.hpp"
#include "edl/job/checkpoint/model_file.hpp"
#include "edl/job/train/local_files.hpp"

namespace edl::train {

EDL_INLINE local_files::local_files(program const& p, job const& j, checkpoint::manifest described,
                                    checkpoint::permission allowed, logger log,
                                    std::function<void()> committing)
    : program_(p),
      job_(j),
      described_(std::move(described)),
      allowed_(std::move(allowed)),
      log_(std::move(log)),
      committing_(std::move(committing)) {
  described_.layout = checkpoint::layout_digest(p.layout);
}

EDL_INLINE void local_files::write(ps::full_snapshot const& what) const {
  std::string const path = checkpoint::checkpoint_path(job_.checkpoint_dir, what.version());
  auto const earlier = checkpoint::begin_checkpoint(path);
  checkpoint::manifest m = described_;
  m.version = what.version();
  m.files = ps::write_snapshot(what, path, program_.layout, {.most_changes = job_.delta_checkpoints});
  committing_();
  checkpoint::commit_checkpoint(path, m, earlier, allowed_);
  // What is too old may stay: the checkpoint that was written is valid.
  try {
    checkpoint::prune(job_.checkpoint_dir, std::uint64_t(job_.keep_checkpoint_max), allowed_);
  } catch (std::exception const& e) {
    log_.warning(fmt::format("old checkpoints in {} cannot be removed: {}", job_.checkpoint_dir, e.what()));
  }
}

EDL_INLINE void local_files::begin(ps::full_snapshot what) {
  invariant(!written_.valid(), "one checkpoint is written after the other");
  version_ = what.version();
  written_ = std::async(std::launch::async, [this, what = std::move(what)] {
    try {
      write(what);
      return std::string();
    } catch (std::exception const& e) {
      return std::string(e.what());
    }
  });
}

EDL_INLINE std::optional<local_files::outcome> local_files::finished(bool wait) {
  if (!written_.valid()) return std::nullopt;
  if (!wait && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  return outcome{version_, written_.get()};
}

EDL_INLINE void local_files::export_model(std::string const& directory, ps::snapshot const& variables,
                                          ps::full_snapshot const& rows) const {
  std::vector<checkpoint::row_source> tables;
  for (auto const& snapshot : rows.tables) tables.push_back(checkpoint::rows_of(*snapshot));
  std::string const path = directory + "/model.safetensors";
  checkpoint::export_model(path, program_.layout, variables.variables(), tables, variables.version(),
                           {job_.seed, job_.hyperparameters});
  log_.info(fmt::format("model written to {}", path));
}

}  // namespace edl::train
