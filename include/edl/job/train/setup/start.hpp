// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/job_files.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/prediction/record_feature.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/train/setup/records.hpp"

namespace edl::train {

inline constexpr std::string_view init_flag = "--checkpoint_dir_for_init=";

struct found_model {
  std::string path;
  std::string directory{};   ///< whose newest checkpoint it is; empty: it was named itself
  std::string warning{};     ///< which newer checkpoints are damaged; empty: none
  std::string damaged{};     ///< the newest of these
  std::string unfinished{};  ///< which newer checkpoint has no manifest; empty: none
};

/// What --checkpoint_dir_for_init means: a checkpoint's directory, or an exported model. `given` is one of
/// these, or a directory that holds checkpoints, of which the newest valid one is meant, or else a
/// model.safetensors. Throws error for anything else, which begins with `flag`.
std::string find_model(std::string const& given, logger const& log,
                       checkpoint::check how = checkpoint::check::checksums,
                       std::string_view flag = init_flag);
found_model find_model(std::string const& given, checkpoint::check how, std::string_view flag);  ///< unlogged

/// The hyperparameters that such a model was trained with, as `--set` takes them; empty where it does not
/// say. Files are not checked, only found. Throws error as `find_model` does.
std::string trained_hyperparameters(std::string const& given);

/// The files that a job leaves. `p` outlives them.
checkpoint::job_files files_of(job const& j, program const& p, records const& r,
                               checkpoint::permission allowed);

/// The same of what `find_model` has found.
std::string hyperparameters_at(std::string const& path);

/// The columns that a model which is evaluated or predicts was trained with; nothing where it does not say.
std::vector<data::table_column> trained_columns(job const& j);

/// What such a model takes of a record; nothing where it does not say.
record_facts facts_at(std::string const& path);

/// The same of the records that a model is trained with.
record_facts facts_of(program const& p, data::source const& training);

/// What rows that its tables lack follow from, table by table. `otherwise`: the seed of a job, where it does
/// not say which one trained it.
std::vector<std::uint64_t> table_seeds(program const& p, std::string const& from, std::uint64_t otherwise);

/// Where a job begins. That is at the newest checkpoint in --checkpoint_dir when it is this very job's (it
/// goes on). Otherwise it is at --checkpoint_dir_for_init (a new job with old values), or with initial
/// values. Throws error when --checkpoint_dir holds another job's checkpoints, damaged ones only (unless
/// --ignore_damaged_checkpoints), or a shard of the data has changed since.
master::restore_point start_of(job const& j, program const& p, records const& r, logger const& log);

/// Where a job begins that has no checkpoints of its own: from --checkpoint_dir_for_init, or initial values.
master::restore_point beginning(job const& j, logger const& log);

/// Puts a store into the state of `directory` (empty: initial values). Of the directory named by
/// --checkpoint_dir_for_init only values are taken; of this job's own checkpoints also what has been applied.
void configure(ps::store& s, job const& j, program const& p, std::string const& directory);

/// Whether a stop leaves a checkpoint to go on from: the job trains and knows a place for one.
inline bool keeps_state(job const& j) {
  return j.command == command::train && !j.checkpoints.checkpoint_dir.empty();
}

/// What a stop leaves to start from, for a log.
std::string way_on(job const& j);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/start.ipp"
#endif
