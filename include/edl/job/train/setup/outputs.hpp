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

/// Creates a job's output directories. Throws usage_error, which names the flag, if it cannot, or if
/// `clean_outputs` could remove the job's own data.
void make_directories(job const& j);

/// Locks a job's directory of results against other jobs: --checkpoint_dir, --prediction_outputs, or --wrong
/// of an evaluation. Null if it has none. `of_command`: of a master (`lock_options::command`). Throws error,
/// which names the job that has it.
std::unique_ptr<checkpoint::directory_lock> lock_outputs(job const& j, checkpoint::lock_options::part of,
                                                         logger const& log,
                                                         std::string const& of_command = {});

/// Begins an epoch of a training job (`checkpoint::directory_lock::claim`). Call with the lock, before
/// reading anything there. Returns the epoch, or 0 without a directory. Sets aside checkpoints that the job
/// no longer descends from, and logs that.
std::uint64_t begin_epoch(job const& j, checkpoint::directory_lock* held, logger const& log);

/// Removes leftovers of earlier processes in a job's output directories: temporary files of killed processes,
/// and, unless it `goes_on` for a killed master, files of incomplete checkpoints, earlier predictions and
/// profiles. Call with the lock.
void clean_outputs(job const& j, bool goes_on, logger const& log);

/// With --profile: writes the time of this process by parts, and of its passes by layers, to `name`.txt and
/// `name`.json. Throws error if they cannot be written.
void write_profile(job const& j, worker::trainer const& t, worker::session& of, std::string const& name,
                   logger const& log);

/// The parts of the time as a table, the longest first, and their sum; for each minibatch trained, too.
std::string table_of(worker::time_account const& spent, strategy how, std::uint64_t minibatches);

/// The sink of predictions: the model's own hook, or a part per task in --prediction_outputs
/// (`prediction_parts`). `from`: the records to predict; null in other jobs. Both must outlive the result.
/// Throws usage_error if the records lack one of --prediction_columns.
worker::prediction_sink predictions_of(job const& j, program const& p, data::source const* from, int id);

/// Makes a training session call the model's `on_step`. After an exception the hook is not called again, and
/// the log says so. `p` must outlive the session.
void call_on_step(worker::session& of, job const& j, program const& p, int id, logger const& log);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/outputs.ipp"
#endif
