// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/adapted_model.hpp"
#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/log.hpp"
#include "edl/core/span.hpp"

namespace edl::checkpoint {

/// Writes a job's checkpoints and models, as its master decides. All calls block on the disk. Thread safety:
/// safe, for different versions and models.
struct job_files {
  parameter_layout const& layout;  ///< must outlive this
  bucket::place directory = {};    ///< of checkpoints; empty: none
  std::uint64_t keep = 0;          ///< number of checkpoints to keep; 0: all
  manifest described = {};         ///< for every checkpoint, except version, generation, layout, files
  permission allowed = {};         ///< to write; throws if another master owns the job
  adapted_model const* adapted = nullptr;  ///< of adapters; must outlive this

  std::string path(std::uint64_t version) const { return checkpoint_path(directory.path(), version); }

  /// A checkpoint that `commit` makes valid, once `contents` names every server's file.
  struct attempt {
    std::string path;
    manifest contents;
    std::vector<std::string> earlier;  ///< as in `begin_checkpoint`
  };
  /// `generation`: of the version's state. Throws what `allowed` throws, and then creates nothing.
  attempt begin(std::uint64_t version, std::uint64_t generation = 0) const;
  void commit(attempt const& one) const {
    commit_checkpoint(directory.at(one.path), one.contents, one.earlier, allowed);
  }

  /// Removes old checkpoints, if a newer one is valid, and sets aside those of a superseded master. If it
  /// cannot, they stay, and it logs that: the written one is valid anyway.
  void prune(logger const& log) const;

  /// Writes `model.safetensors` into a place (`checkpoint::export_model`), and logs that. Of adapters, it
  /// writes what `export_adapted` does.
  void export_model(std::string const& into, view<float> variables, std::span<row_source const> tables,
                    std::uint64_t version, logger const& log) const;
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/job_files.ipp"
#endif
