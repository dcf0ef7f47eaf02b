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

/// The master's options, and where it begins (`start_of`).
master::job_options master_options(job const& j, program const& p, records const& r, logger const& log);

/// The number of compute threads of a process: the command line's, or its share of the granted cores, divided
/// with `processes` − 1 others.
int threads_of(job const& j, int processes);

/// A log line about a requested precision that this trainer does not support; empty: it does.
std::string precision_note(job const& j, worker::trainer const& from);

/// The trainer options of worker number `id` of `workers` on one machine. They use the visible GPUs in turn.
worker::trainer_options trainer_options_of(job const& j, program const& p, int workers, int id);

/// The session options of the job's workers.
worker::session_options session_options_of(job const& j, program const& p);

/// How pushes become steps. Each push is a step with --use_async, in one process, and if one gradient is
/// enough for a step and no --sync_version_tolerance is set.
std::unique_ptr<ps::policy> policy_of(job const& j);

/// The seed of a table's rows, in a job with this seed.
std::uint64_t table_seed(std::uint64_t job_seed, std::size_t table);

/// A store of part `part` of `parts` of the model: of its arena, and of the hash slots of its tables.
ps::store_options store_options_of(job const& j, program const& p, ps::policy const& when, std::uint32_t part,
                                   std::uint32_t parts);

/// Flags of a training job that must be equal in all of its processes, as "--seed=1": those read by the
/// master and its workers, or by a server. Of adapters (`of`) also what base was read.
std::vector<std::string> shared_flags(job const& j, bool reads_records, program const* of = nullptr);

/// One line for the user when an evaluation is complete: `Evaluation metrics[v=50]: {'accuracy': 0.97}`, or
/// as JSON: `{"version":50,"records":512,"metrics":{"accuracy":0.97}}`, with null for NaN and infinity.
std::string evaluation_line(program const& p, master::evaluation_result const& r,
                            result_format how = result_format::text);

/// A note about a result's metrics that are not finite, and the decisions that ignore them. Empty: all are
/// finite.
std::string odd_metrics(job const& j, program const& p, master::evaluation_result const& r);

/// Lines for the end of a job: records of each epoch, expected and applied.
std::vector<std::string> account_lines(master::coordinator const& c);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/setup.ipp"
#endif
