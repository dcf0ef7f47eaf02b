// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "edl/core/log.hpp"
#include "edl/core/span.hpp"
#include "edl/job/checkpoint/checkpoint.hpp"
#include "edl/job/checkpoint/manifest.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/train/program.hpp"

namespace edl::train {

/// The files of a job whose model is in this process: its checkpoints, and its models. Thread safety: used by
/// one thread.
class local_files {
 public:
  /// `described`: of every checkpoint, but for version and files (`train::describe`). `allowed`: throws when
  /// nothing may be written any more. `committing` is called, by whatever thread, before a checkpoint becomes
  /// valid. `p` and `j` outlive this.
  local_files(
      program const& p, job const& j, checkpoint::manifest described, checkpoint::permission allowed,
      logger log, std::function<void()> committing = [] {});
  local_files(local_files const&) = delete;
  local_files& operator=(local_files const&) = delete;

  /// Writes a checkpoint, and removes what is too old. Throws error.
  void write(ps::full_snapshot const& what) const;

  /// The same on a thread of its own, after one that is being written.
  void begin(ps::full_snapshot what);

  struct outcome {
    std::uint64_t version = 0;
    std::string error;  ///< why it could not be written; empty: it is
  };
  /// What became of the checkpoint that was begun; once. Nothing: there is none, or, unless `wait`, it is
  /// being written yet.
  std::optional<outcome> finished(bool wait);

  /// Writes a model into the directory, with rows as in `rows`. Throws error.
  void export_model(std::string const& directory, ps::snapshot const& variables,
                    ps::full_snapshot const& rows) const;

 private:
  program const& program_;
  job const& job_;
  checkpoint::manifest described_;
  checkpoint::permission allowed_;
  logger log_;
  std::function<void()> committing_;
  std::uint64_t version_ = 0;  // that is being written
  std::future<std::string> written_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local_files.ipp"
#endif
