// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/job_files.hpp"
#include "edl/core/error.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/prediction/record_feature.hpp"
#include "edl/job/train/setup/model_copy.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/train/setup/records.hpp"

namespace edl::train {

inline constexpr std::string_view init_flag = "--checkpoint_dir_for_init=";

struct found_model {
  std::string path;                                  ///< where this process reads it
  std::string url{};                                 ///< of which `path` is a copy: s3://…; empty: of none
  std::shared_ptr<bucket::local_copy const> copy{};  ///< that stays as long as this

  /// Where all processes of a job find it.
  std::string const& common() const { return url.empty() ? path : url; }

  std::string directory{};   ///< the directory whose newest checkpoint it is; empty: it was named itself
  std::string warning{};     ///< which newer checkpoints are damaged; empty: none
  std::string damaged{};     ///< the newest of these
  std::string unfinished{};  ///< which newer checkpoint has no manifest; empty: none
};

/// There is no model at this path, yet.
struct no_model : error {
  using error::error;
};

/// Resolves --checkpoint_dir_for_init to a checkpoint's directory, or an exported model. `given` is one of
/// these, or a directory with checkpoints, whose newest valid one is used, or else with a model.safetensors.
/// `s3://…` names objects likewise, which are copied into `cache`. Throws no_model if there are no such
/// objects, and error, which begins with `flag`, for anything else.
found_model find_model(std::string const& given, logger const& log,
                       checkpoint::check how = checkpoint::check::checksums,
                       std::string_view flag = init_flag, bucket::cache_options cache = {});
/// The same, without a log.
found_model find_model(std::string const& given, checkpoint::check how, std::string_view flag,
                       bucket::cache_options cache = {});

/// The hyperparameters of the training of --checkpoint_dir_for_init, in the form of `--set`; empty if it does
/// not record them. Does not verify files. Throws error as `find_model` does.
std::string trained_hyperparameters(job const& j);

/// The files that a job writes. `p` must outlive them.
checkpoint::job_files files_of(job const& j, program const& p, records const& r,
                               checkpoint::permission allowed);

/// The same for a result of `find_model`.
std::string hyperparameters_at(std::string const& path);

/// How the training of a model that evaluates or predicts read its tables, as far as the model records that.
table_reading trained_reading(job const& j);

/// The features that the model takes; empty if it does not record them.
record_facts facts_at(std::string const& path);

/// The same, from the training records.
record_facts facts_of(program const& p, data::source const& training);

/// The seeds of missing rows, for each table. `otherwise`: the seed of a job, if the model does not record
/// its own.
std::vector<std::uint64_t> table_seeds(program const& p, std::string const& from, std::uint64_t otherwise);

/// Where a job begins: at the newest checkpoint in --checkpoint_dir if it is this job's (it resumes),
/// otherwise at --checkpoint_dir_for_init (a new job with old values), or with initial values. Throws error
/// if --checkpoint_dir contains another job's checkpoints, only damaged ones (unless
/// --ignore_damaged_checkpoints), or a shard of the data has changed since.
master::restore_point start_of(job const& j, program const& p, records const& r, logger const& log);

/// Where a job without checkpoints begins: from --checkpoint_dir_for_init, or initial values.
master::restore_point beginning(job const& j, logger const& log);

/// Loads the state of `given`, which may be a copied `s3://…`, into a store (empty: initial values). From
/// --checkpoint_dir_for_init it loads only values; from this job's own checkpoints also the ledger.
void configure(ps::store& s, job const& j, program const& p, std::string const& given);

/// Whether a stopped job leaves a checkpoint to resume from: it trains and has a checkpoint directory.
inline bool keeps_state(job const& j) {
  return j.command == command::train && !j.checkpoints.checkpoint_dir.empty();
}

/// How to resume after a stop, for a log.
std::string way_on(job const& j);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/start.ipp"
#endif
