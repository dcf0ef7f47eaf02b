// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/app/program.hpp"
#include "edl/core/job.hpp"
#include "edl/core/log.hpp"
#include "edl/data/source.hpp"
#include "edl/master/coordinator.hpp"
#include "edl/ps/policy.hpp"
#include "edl/ps/store.hpp"
#include "edl/wire/directory_lock.hpp"
#include "edl/wire/manifest.hpp"
#include "edl/worker/session.hpp"
#include "edl/worker/trainer.hpp"

namespace edl::app {

/// The records that a command line names, opened: what a job does not use is null.
struct records {
  std::unique_ptr<data::source> training, evaluation, prediction;

  worker::sources view() const { return {training.get(), evaluation.get(), prediction.get()}; }
};

/// Makes the directories that a job writes to. Throws usage_error, naming the flag, where it cannot.
void make_directories(job const& j);

/// Throws data_error when they are missing or damaged; with --skip_damaged what is left out is logged
/// instead.
records open_records(job const& j, logger const& log);

/// Keeps the directory that a job writes its results to from other jobs: --checkpoint_dir, or
/// --prediction_outputs. Null where it writes to none. Throws error, which names the job that has it.
std::unique_ptr<wire::directory_lock> lock_outputs(job const& j, wire::lock_options::part of,
                                                   logger const& log);

/// Removes what earlier processes have left in the directories that a job writes to: temporaries of those
/// that were killed and, unless it `goes_on` for a master that was, files of checkpoints that were never
/// complete, earlier predictions and profiles. For who has the lock.
void clean_outputs(job const& j, bool goes_on, logger const& log);

/// What --checkpoint_dir_for_init means: a checkpoint's directory, or an exported model. `given` is one of
/// these, or a directory that holds checkpoints, of which the newest valid one is meant, or else a
/// model.safetensors. Throws error for anything else.
std::string find_model(std::string const& given, logger const& log);

/// What a stop leaves to start from, for a log.
std::string way_on(job const& j);

/// Where the predictions of a job lie; empty: it makes none, or the model takes them.
std::string outcome(job const& j, program const& p);

/// What the master is to do, and where it begins: from the newest checkpoint in --checkpoint_dir when that is
/// this very job's (it goes on), from --checkpoint_dir_for_init (a new job with old values), or from initial
/// values. Throws error when --checkpoint_dir holds another job's checkpoints, damaged ones only (unless
/// --ignore_damaged_checkpoints), or a shard of the data has changed since.
master::job_options master_options(job const& j, records const& r, logger const& log);

/// Where a job begins that has no checkpoints of its own: from --checkpoint_dir_for_init, or initial values.
master::restore_point beginning(job const& j, logger const& log);

/// The part of a manifest that says which job a checkpoint is of.
wire::manifest describe(job const& j, records const& r);

/// How worker number `id` computes. Its threads are what the command line says, or its share of the cores
/// that are granted to it and to `workers` − 1 others; these take the GPUs that they see in turn.
worker::trainer_options trainer_options_of(job const& j, int workers, int id);

/// With --profile: where the time of this process's passes went, as `name`.txt and `name`.json. Throws error
/// where they cannot be written.
void write_profile(job const& j, worker::trainer const& t, std::string const& name, logger const& log);

/// How pushes become steps: as they come with --use_async, in one process, and where one gradient is enough
/// for a step and no --sync_version_tolerance says how old it may be.
std::unique_ptr<ps::policy> policy_of(job const& j);

ps::store_options store_options_of(job const& j, program const& p, ps::policy const& when,
                                   element_range elements);

/// Puts a store into the state of `directory` (empty: initial values). Of the directory named by
/// --checkpoint_dir_for_init only values are taken; of this job's own checkpoints also what has been applied.
void configure(ps::store& s, job const& j, program const& p, std::string const& directory);

/// Where predictions go: to the model's own hook, or to a file per task in --prediction_outputs, each whole
/// or not there; one line per record, outputs separated by commas.
worker::prediction_sink predictions_of(job const& j, program const& p, int id);

/// One line for the user when an evaluation is complete, as `Evaluation metrics[v=50]: {'accuracy': 0.97}`.
std::string evaluation_line(program const& p, master::evaluation_result const& r);

/// Lines for the end of a job: records of each epoch, expected and applied.
std::vector<std::string> account_lines(master::coordinator const& c);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/setup.ipp"
#endif
