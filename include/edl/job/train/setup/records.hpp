// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::train {

/// The records that a command line names, opened: what a job does not use is null.
struct records {
  std::unique_ptr<data::source> training, evaluation, prediction;

  worker::sources view() const { return {training.get(), evaluation.get(), prediction.get()}; }
};

/// Throws data_error when they are missing or damaged; with --skip_damaged what is left out is logged
/// instead. `own` opens what the model opens by itself. With --validation_split, a share of the training data
/// is what is evaluated on; where nothing is trained, that share of the validation data. Columns of other
/// tables are read as those of the training data, or else as `known`, from `trained_columns`.
records open_records(job const& j, data::opener const& own, logger const& log,
                     std::vector<data::table_column> known = {});

/// Logs what a person should know of them, for one process of a job: which cells make a column a text, which
/// classes folders have, how many records are held out. It warns of training data that are sorted by a
/// feature, and of a learning rate that is 0 for much of the job.
void tell_of(records const& r, job const& j, update_rule const& rule, logger const& log);

/// Steps that the training takes, by the job's flags and its records: whole epochs, or --max_step. An
/// estimate where the number of workers decides it (all-reduce), and where records are skipped as damaged.
/// 0: it has no end.
std::uint64_t training_steps(job const& j, data::source const& training);

/// Tells a rule whose schedule depends on them. Throws usage_error where there is no such number, or it
/// depends on how many workers there are from time to time.
void plan_training(update_rule& rule, job const& j, records const& r);

/// A warning where the learning rate is 0 in a quarter of a job's steps or more; else empty. How many steps
/// it has is an estimate.
std::string unused_steps(job const& j, data::source const& training, update_rule const& rule);

/// The records that are trained alone.
std::unique_ptr<data::source> open_training_data(job const& j, data::opener const& own);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/records.ipp"
#endif
