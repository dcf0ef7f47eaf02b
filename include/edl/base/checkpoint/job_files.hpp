// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/log.hpp"
#include "edl/core/span.hpp"

namespace edl::checkpoint {

/// The checkpoints and models that a job leaves, written by whoever carries out what its master decides. All
/// calls wait for the disk. Thread safety: safe, for different versions and models.
struct job_files {
  parameter_layout const& layout;  ///< outlives this
  std::string directory = {};      ///< of checkpoints; empty: none
  std::uint64_t keep = 0;          ///< so many checkpoints; 0: all
  manifest described = {};         ///< of every checkpoint, but for version, generation, layout, files
  permission allowed = {};         ///< to write anything; throws when the job is another master's

  std::string path(std::uint64_t version) const { return checkpoint_path(directory, version); }

  /// A checkpoint that becomes valid by `commit`, once `contents` names what every server has written.
  struct attempt {
    std::string path;
    manifest contents;
    std::vector<std::string> earlier;  ///< as of `begin_checkpoint`
  };
  /// `generation`: whose state the version is. Throws what `allowed` throws, and has made nothing then.
  attempt begin(std::uint64_t version, std::uint64_t generation = 0) const;
  void commit(attempt const& one) const { commit_checkpoint(one.path, one.contents, one.earlier, allowed); }

  /// Removes checkpoints that are too old, when a newer one is valid, and sets those aside that a master has
  /// left here that is not this job's any more. Where it cannot they stay, and the log says so: the one that
  /// was written is valid.
  void prune(logger const& log) const;

  /// Writes `model.safetensors` into a directory, which is made, and says so: `checkpoint::export_model`.
  void export_model(std::string const& into, view<float> variables, std::span<row_source const> tables,
                    std::uint64_t version, logger const& log) const;
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/job_files.ipp"
#endif
