// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "edl/compute/data/augment.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"
#include "edl/job/train/trainers/learning_trainer.hpp"

namespace edl::train {

EDL_INLINE learning_trainer::learning_trainer(std::unique_ptr<learner> of, worker::trainer_options const& o)
    : learner_(std::move(of)), seed_(o.seed), max_batch_(o.max_batch) {
  constexpr std::size_t traced_calls = 20'000;
  if (o.profile) learner_->set_trace(&trace_.emplace(traced_calls));
}

EDL_INLINE data::batch learning_trainer::make_batch() const {
  auto const& f = facts();
  return data::make_batch(max_batch_, f.input.size(), f.class_labels ? 0 : f.labels,
                          f.class_labels ? f.labels : 0, f.embeddings.ids);
}

EDL_INLINE void learning_trainer::feed(example const& record, data::batch& b, int row, mode m) const {
  learner_->feed(record, b, row, m);
  if (m != mode::training || !facts().augments) return;
  if (b.placements.empty())
    learner_->augment(b.feature_row(row), stream_of(b, row));
  else
    place(b, row);
}

EDL_INLINE double learning_trainer::loss(data::batch const& b, view<float> outputs,
                                         std::span<float> gradients) {
  auto const timed = time_loss();
  return of().loss(b.rows, outputs, b, gradients);
}

EDL_INLINE nn::trace::scope learning_trainer::time_loss() {
  return {trace_ ? &*trace_ : nullptr, nn::trace::direction::forward,
          [] { return std::string(nn::trace::loss); }, facts().output, shape{1, 1, 1}};
}

EDL_INLINE std::vector<std::uint32_t> learning_trainer::in_doubt(view<float> said) const {
  std::size_t const classes = facts().output.size();
  return least_confident(said, classes,
                         std::size_t(double(facts().views_share) * double(said.size() / classes)));
}

EDL_INLINE void learning_trainer::place(data::batch& b, int row) const {
  if (!facts().places) return;
  placement& at = b.placements[std::size_t(row)];
  at = {};
  learner_->place(stream_of(b, row), at);
}

/// A record's random numbers in an epoch, and those that are the same in every epoch. Independent of the
/// worker that reads the record.
EDL_INLINE record_stream learning_trainer::stream_of(data::batch const& b, int row) const {
  task_key const& t = b.identity.key.task;
  std::uint64_t const record = b.records[std::size_t(row)];
  return {random_stream{mix(mix(seed_, 2), mix(t.epoch, t.index)), record},
          random_stream{mix(seed_, 3), b.first_place + record}, t.epoch};
}

}  // namespace edl::train
