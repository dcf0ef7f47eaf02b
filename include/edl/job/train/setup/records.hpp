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

/// The opened records of a command line: null if a job does not use them.
struct records {
  std::unique_ptr<data::source> training, evaluation, prediction;

  worker::sources view() const { return {training.get(), evaluation.get(), prediction.get()}; }
};

/// How the training of a model read its tables.
struct table_reading {
  std::vector<data::table_column> columns{};  ///< of the features that the model takes
  std::string missing{};                      ///< --missing; empty: unknown
};

/// Throws data_error if they are missing or damaged; with --skip_damaged it logs what it skips instead. `own`
/// opens the model's own formats. With --validation_split, a share of the training data is for evaluation;
/// without training, that share of the validation data. Columns of other tables are read like those of the
/// training data, or else as `known`, from `trained_reading`, unless --missing is given.
records open_records(job const& j, data::opener const& own, logger const& log, table_reading known = {});

/// Logs notes about them, for one process of a job: cells that make a column a text, the folders' classes,
/// the number of held-out records. Warns about training data sorted by a feature, and about a learning rate
/// that is 0 for much of the job.
void tell_of(records const& r, job const& j, update_rule const& rule, logger const& log);

/// The steps of the training, from the job's flags and records: whole epochs, or --max_step. An estimate if
/// it depends on the number of workers (all-reduce), or if damaged records are skipped. 0: unlimited.
std::uint64_t training_steps(job const& j, data::source const& training);

/// Passes them to a rule whose schedule depends on them. Throws usage_error if the number is unlimited, or
/// depends on the changing number of workers.
void plan_training(update_rule& rule, job const& j, records const& r);

/// A warning if the learning rate is 0 in a quarter of a job's steps or more; otherwise empty. The number of
/// steps is an estimate.
std::string unused_steps(job const& j, data::source const& training, update_rule const& rule);

/// Only the training records.
std::unique_ptr<data::source> open_training_data(job const& j, data::opener const& own);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/records.ipp"
#endif
