// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "edl/base/checkpoint/directory_lock.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/worker/session.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// Makes the directories that a job writes to. Throws usage_error, naming the flag, where it cannot, and
/// where `clean_outputs` could remove the job's own data.
void make_directories(job const& j);

/// Keeps the directory that a job writes its results to from other jobs: --checkpoint_dir,
/// --prediction_outputs, or --wrong of an evaluation. Null where it writes to none. Throws error, which names
/// the job that has it.
std::unique_ptr<checkpoint::directory_lock> lock_outputs(job const& j, checkpoint::lock_options::part of,
                                                         logger const& log);

/// Begins an epoch of a job that trains (`checkpoint::directory_lock::claim`), for who has the lock and
/// before anything there is read: the epoch, or 0 where there is no directory. Checkpoints of a line that the
/// job has left are set aside, which is logged.
std::uint64_t begin_epoch(job const& j, checkpoint::directory_lock* held, logger const& log);

/// Removes what earlier processes have left in the directories that a job writes to. These are temporaries of
/// processes that were killed. Unless it `goes_on` for a master that was, they are also files of checkpoints
/// that were never complete, earlier predictions and profiles. For who has the lock.
void clean_outputs(job const& j, bool goes_on, logger const& log);

/// With --profile: where the time of this process went, part by part, and that of its passes, layer by layer,
/// as `name`.txt and `name`.json. Throws error where they cannot be written.
void write_profile(job const& j, worker::trainer const& t, worker::session& of, std::string const& name,
                   logger const& log);

/// The parts of the time as a table, the longest first, and their sum; for each minibatch trained, too.
std::string table_of(worker::time_account const& spent, strategy how, std::uint64_t minibatches);

/// Where predictions go: to the model's own hook, or to a part per task in --prediction_outputs
/// (`prediction_parts`). `from`: what is predicted; null where the job does something else. Both outlive what
/// is returned. Throws usage_error where the records lack one of --prediction_columns.
worker::prediction_sink predictions_of(job const& j, program const& p, data::source const* from, int id);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/outputs.ipp"
#endif
