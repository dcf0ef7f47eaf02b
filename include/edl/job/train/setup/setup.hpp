// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/ps/policy.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/worker/session.hpp"
#include "edl/job/worker/trainer_options.hpp"

namespace edl::train {

/// What the master is to do, and where it begins (`start_of`).
master::job_options master_options(job const& j, program const& p, records const& r, logger const& log);

/// Threads that compute in a process. They are what the command line says, or its share of the cores that are
/// granted to it and to `processes` − 1 others.
int threads_of(job const& j, int processes);

/// What a user has asked of the precision and does not get from this trainer, as a line for a log; empty:
/// all.
std::string precision_note(job const& j, worker::trainer const& from);

/// How worker number `id` of `workers` that share a machine computes. They take the GPUs that they see in
/// turn.
worker::trainer_options trainer_options_of(job const& j, program const& p, int workers, int id);

/// How a worker of the job works.
worker::session_options session_options_of(job const& j, program const& p);

/// How pushes become steps. They become steps as they come with --use_async and in one process. They do so,
/// too, where one gradient is enough for a step and no --sync_version_tolerance says how old it may be.
std::unique_ptr<ps::policy> policy_of(job const& j);

/// What rows of a table follow from, in a job with this seed.
std::uint64_t table_seed(std::uint64_t job_seed, std::size_t table);

/// A store of part `part` of `parts` of the model: of its arena, and of the hash slots of its tables.
ps::store_options store_options_of(job const& j, program const& p, ps::policy const& when, std::uint32_t part,
                                   std::uint32_t parts);

/// Flags of a training job that all of its processes have to be given alike, as "--seed=1": those that a
/// master and its workers read, or a server.
std::vector<std::string> shared_flags(job const& j, bool reads_records);

/// One line for the user when an evaluation is complete, as `Evaluation metrics[v=50]: {'accuracy': 0.97}`,
/// or as JSON: `{"version":50,"records":512,"metrics":{"accuracy":0.97}}`, where what is no number is null.
std::string evaluation_line(program const& p, master::evaluation_result const& r,
                            result_format how = result_format::text);

/// What a person should know of a result: which of its metrics are no numbers, and what then decides nothing.
/// Empty: all are.
std::string odd_metrics(job const& j, program const& p, master::evaluation_result const& r);

/// Lines for the end of a job: records of each epoch, expected and applied.
std::vector<std::string> account_lines(master::coordinator const& c);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/setup.ipp"
#endif
