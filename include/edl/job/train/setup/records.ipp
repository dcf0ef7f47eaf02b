// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "edl/base/bucket/readable.hpp"
#include "edl/compute/data/first_records.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/sorted_by.hpp"
#include "edl/compute/data/split.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/setup/model_copy.hpp"
#include "edl/job/train/setup/records.hpp"

namespace edl::train {
namespace detail {

inline std::unique_ptr<data::source> open_data(job const& j, std::string const& path, data::opener const& own,
                                               logger const& log, table_reading const& known = {}) {
  if (path.empty()) return nullptr;
  return data::open_source(path,
                           {.skip_damaged = j.data.skip_damaged,
                            .missing = data::read_missing_words(
                                j.data.missing.value_or(known.missing.empty() ? "auto" : known.missing)),
                            .known = std::make_shared<std::vector<data::table_column>>(known.columns)},
                           bucket::opener_of(cache_of(j, log), own));
}

/// Describes the labels of a set with named classes.
inline std::string described_classes(std::span<std::string const> classes) {
  constexpr std::size_t most = 20;
  std::string all;
  for (std::size_t i = 0; i < std::min(classes.size(), most); ++i)
    all += fmt::format("{}{} {}", i > 0 ? ", " : "", i, printable(classes[i], 64));
  return classes.size() > most ? fmt::format("{} and {} more", all, classes.size() - most) : all;
}

inline void check_classes(records const& r) {
  if (!r.training || !r.evaluation) return;
  auto const ours = r.training->classes(), theirs = r.evaluation->classes();
  if (!ours.empty() && !theirs.empty() && !std::ranges::equal(ours, theirs))
    throw usage_error(
        fmt::format("--validation_data has other classes than --training_data ({}; {}): labels would differ. "
                    "Make an empty "
                    "folder where one is missing",
                    described_classes(theirs), described_classes(ours)));
}

}  // namespace detail

EDL_INLINE records open_records(job const& j, data::opener const& own, logger const& log,
                                table_reading known) {
  records r;
  auto whole = detail::open_data(j, j.data.training_data, own, log);
  if (whole) known.columns = data::columns_of(*whole);
  auto const tell = [&](data::source const* of) {
    if (!of) return;
    for (std::string const& line : of->damage()) log.warning(line);
  };
  tell(whole.get());
  if (j.data.validation_split > 0 && whole) {
    std::shared_ptr<data::source const> const shared = std::move(whole);
    auto const part = [&](data::split_part p) {
      return std::make_unique<data::split_source>(shared, j.data.validation_split, j.seed, p);
    };
    r.training = part(data::split_part::training);
    r.evaluation = part(data::split_part::validation);
  } else {
    r.training = std::move(whole);
    r.evaluation = detail::open_data(j, j.data.validation_data, own, log, known);
    tell(r.evaluation.get());
    if (j.data.validation_split > 0 && r.evaluation)
      r.evaluation = std::make_unique<data::split_source>(std::move(r.evaluation), j.data.validation_split,
                                                          j.seed, data::split_part::validation);
  }
  r.prediction = detail::open_data(j, j.data.prediction_data, own, log, known);
  tell(r.prediction.get());
  detail::check_classes(r);
  auto const keep = [&](std::unique_ptr<data::source>& of, std::uint64_t minibatches) {
    if (of && minibatches > 0)
      of = std::make_unique<data::first_records>(std::move(of),
                                                 minibatches * std::uint64_t(j.data.minibatch_size));
  };
  keep(r.training, std::uint64_t(j.data.overfit_batches));
  keep(r.evaluation, j.dry_run ? 1 : 0);
  return r;
}

EDL_INLINE void tell_of(records const& r, job const& j, update_rule const& rule, logger const& log) {
  std::string missing;  // logged once, because a job's files are alike
  auto const notes = [&](std::unique_ptr<data::source> const& of) {
    if (!of) return;
    for (std::string const& line : of->notes()) log.warning(line);
    if (std::string note = missing.empty() ? of->missing_note() : ""; !note.empty())
      log.warning(missing = std::move(note));
  };
  notes(r.training);
  if (j.command == command::train && rule.plateau() && !j.judges() && !j.dry_run)
    log.warning(
        "the model's schedule reduces the rate by evaluations, and this job makes none while it trains, so "
        "that the rate is never reduced: give --evaluation_steps, and --validation_data or "
        "--validation_split");
  std::size_t damaged = 0;
  for (auto const* of : {&r.training, &r.evaluation, &r.prediction})
    if (*of && (of != &r.evaluation || !r.training || j.data.validation_split <= 0))
      damaged += (*of)->damage().size();
  if (damaged > 0)
    log.warning(fmt::format(
        "{} from its damaged place on is left out as a whole; --max_damaged={} does not count those records, "
        "because their number is unknown",
        damaged == 1 ? "the content of a file" : fmt::format("the content of each of {} files", damaged),
        j.data.max_damaged));
  if (auto const tasks = j.data.records_per_task();
      r.training && j.command == command::train && j.data.shuffle && data::records(*r.training) > tasks)
    if (auto const column = data::sorted_by(*r.training); !column.empty())
      log.warning(
          fmt::format("--training_data={} is sorted by '{}', and --shuffle mixes records within tasks of {} "
                      "only: mix the "
                      "records before, or make tasks larger (--num_minibatches_per_task)",
                      j.data.training_data, printable(column, 64), tasks));
  if (!r.training || j.data.validation_split <= 0) notes(r.evaluation);
  notes(r.prediction);
  if (r.training && !r.training->classes().empty())
    log.info(fmt::format("classes: {}", detail::described_classes(r.training->classes())));
  if (j.data.validation_split > 0 && r.training && r.evaluation)
    log.info(fmt::format("{} of {} records are held out for evaluation", data::records(*r.evaluation),
                         data::records(*r.evaluation) + data::records(*r.training)));
  if (r.training)
    if (auto const unused = unused_steps(j, *r.training, rule); !unused.empty()) log.warning(unused);
}

EDL_INLINE std::uint64_t training_steps(job const& j, data::source const& training) {
  std::uint64_t const size = std::uint64_t(j.data.minibatch_size),
                      workers = j.strategy == strategy::allreduce
                                    ? std::uint64_t(std::max(1, j.processes.num_workers))
                                    : 1,
                      of_a_step = minibatches_of_a_step(j) * workers;
  std::uint64_t minibatches = 0;  // of an epoch; the last one of a shard may be short
  for (data::shard const& s : training.shards()) minibatches += (s.records + size - 1) / size;
  std::uint64_t const steps =
      (minibatches * std::uint64_t(std::max(0, j.data.num_epochs)) + of_a_step - 1) / of_a_step;
  return j.data.max_step > 0 && (j.data.num_epochs <= 0 || j.data.max_step < steps) ? j.data.max_step : steps;
}

EDL_INLINE void plan_training(update_rule& rule, job const& j, records const& r) {
  if (!rule.depends_on_training() || j.command != command::train || !r.training) return;
  if (j.strategy == strategy::allreduce && !j.training.fixed_global_batch)
    throw usage_error(
        "the schedule has steps that are a share of the training, but the number of steps of all-reduce "
        "depends on the number of workers: add --fixed_global_batch, or give the schedule a number of steps");
  std::uint64_t const steps = training_steps(j, *r.training);
  if (steps == 0)
    throw usage_error(
        "the schedule has steps that are a share of the training, and this training has no end: give "
        "--num_epochs or --max_step, or give the schedule a number of steps");
  rule.train_for(steps);
}

EDL_INLINE std::string unused_steps(job const& j, data::source const& training, update_rule const& rule) {
  if (j.command != command::train) return {};
  std::uint64_t const steps = training_steps(j, training);
  constexpr std::uint64_t fewest = 20, most_looks = 400;
  if (steps < fewest) return {};
  std::uint64_t const looks = std::min(steps, most_looks);
  std::uint64_t zero = 0, first = 0;
  for (std::uint64_t i = 0; i < looks; ++i) {
    auto const step = std::uint64_t(double(steps) * double(i) / double(looks));
    if (rule.learning_rate(step) == 0 && zero++ == 0) first = step;
  }
  if (zero < looks / 4) return {};
  return fmt::format(
      "the learning rate is 0 in about {} % of this job's {} steps, first at about step {}, and such steps "
      "train nothing: give the schedule the steps of the whole job, or train for fewer",
      zero * 100 / looks, steps, first);
}

EDL_INLINE std::unique_ptr<data::source> open_training_data(job const& j, data::opener const& own) {
  auto whole = detail::open_data(j, j.data.training_data, own, logger(severity::warning));
  if (j.data.validation_split <= 0) return whole;
  return std::make_unique<data::split_source>(std::move(whole), j.data.validation_split, j.seed,
                                              data::split_part::training);
}

}  // namespace edl::train
