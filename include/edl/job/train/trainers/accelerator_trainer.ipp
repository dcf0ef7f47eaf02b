// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/trainers/accelerator_trainer.hpp"

namespace edl::train {

namespace detail {

EDL_INLINE gpu_sample_options sample_options(learner_facts const& f, int max_batch) {
  gpu_sample_options of{.input = f.input,
                        .labels = f.labels,
                        .max_batch = max_batch,
                        .placed = f.places,
                        .exact = f.of_ids,
                        .given_apart = f.embeddings.ids > 0,
                        .fed_alike = f.places || !f.augments};
  if (f.averages)
    for (test_time_view const& v : f.views) of.views.push_back(v.placed());
  return of;
}

}  // namespace detail

EDL_INLINE accelerator_trainer::accelerator_trainer(std::unique_ptr<learner> learns,
                                                    std::shared_ptr<accelerator> on,
                                                    worker::trainer_options const& o)
    : learning_trainer(std::move(learns), o),
      threads_(o.device.threads),
      gpu_(on),
      samples_(gpu_, detail::sample_options(facts(), o.max_batch)),
      rows_(gpu_, facts().embeddings, facts().input.size(), o.max_batch),
      keep_(o.samples),
      x_(samples(facts().input.size())),
      outputs_(samples(facts().views.size() * facts().output.size())),
      loss_(gpu_, 1),
      state_before_(gpu_, facts().state),
      variables_(gpu_, of().variables().size()),
      gradients_(gpu_, facts().parameters),
      results_(gpu_, outputs_.span().size()),
      mean_(gpu_, 1) {
  gpu_->read(of().variables(), variables_.span());
}

EDL_INLINE data::batch accelerator_trainer::make_batch() const {
  auto b = learning_trainer::make_batch();
  auto const all = {pin(gpu_, std::as_bytes(std::span(b.features))),
                    pin(gpu_, std::as_bytes(std::span(b.targets))),
                    pin(gpu_, std::as_bytes(std::span(b.classes)))};
  if (facts().places) b.placements.resize(std::size_t(b.capacity));
  b.guard = std::make_shared<std::vector<std::shared_ptr<void>>>(all);
  return b;
}

EDL_INLINE std::string accelerator_trainer::expect(std::uint64_t training, std::uint64_t evaluation) {
  if (!has_tables()) return samples_.keep(keep_, training, evaluation);
  if (keep_ == worker::keep_samples::on)
    throw usage_error(
        "--keep_samples=on: samples have rows of tables, which change with every step; use "
        "--keep_samples=auto");
  return {};
}

EDL_INLINE bool accelerator_trainer::has(data::batch& b) const {
  if (!samples_.has(b)) return false;
  if (b.identity.m == mode::training)
    for (int row = 0; row < int(b.records.size()); ++row) learning_trainer::place(b, row);
  return true;
}

EDL_INLINE void accelerator_trainer::give_rows(data::batch& b, sparse::minibatch_rows const& rows) {
  std::lock_guard const turn(turn_);
  rows_.give(b, rows, samples_.given());
}

EDL_INLINE std::span<sparse::row_gradients const> accelerator_trainer::row_gradients(
    data::batch const&, sparse::minibatch_rows& rows) {
  std::lock_guard const turn(turn_);
  return rows_.sum(of().input_gradient(), rows);
}

EDL_INLINE void accelerator_trainer::variables_written() {
  std::lock_guard const turn(turn_);
  if (resident_ && !std::exchange(away_, true)) {
    if (kept_.span().empty()) kept_ = device_buffer<float>(gpu_, of().variables().size());
    gpu_->move(of().variables(), kept_.span());
  }
  gpu_->upload(std::as_bytes(variables_.span()), of().variables().data());
  gpu_->refresh();
  gpu_->synchronize();
}

EDL_INLINE void accelerator_trainer::resume() {
  std::lock_guard const turn(turn_);
  if (!std::exchange(away_, false)) return;
  gpu_->move(kept_.span(), of().variables());
  gpu_->refresh();
}

EDL_INLINE double accelerator_trainer::train(data::batch const& b, std::uint64_t step,
                                             worker::gradients_ready const& ready) {
  std::unique_lock turn(turn_);
  if (b.rows == 0) {
    std::ranges::fill(gradients_.span(), 0.0f);
    gpu_->write(gradients_.span(), of().gradients());
    return 0;
  }
  samples_.give(b);
  if (borders_.empty()) return train_alone(b, step);
  double const loss = train_for_sum(b, step);
  turn.unlock();
  if (ready && std::isfinite(loss))
    for (std::size_t const first : announced_) ready(first);
  return loss;
}

EDL_INLINE double accelerator_trainer::train_alone(data::batch const& b, std::uint64_t step) {
  double loss = 0;
  if (facts().loss_on_gpu) {
    run(work::training, b.rows, step, [&] {
      forward_with_loss(b.rows, step);
      of().backward(x_of(b.rows), b.rows, {});
    });
    gpu_->download(loss_.span().data(), std::as_writable_bytes(mean_.span()));
    fetch_gradients();
    gpu_->synchronize();
    loss = double(mean_.span()[0]);
  } else {
    std::span<float> slope;
    loss = loss_on_processor(b, step, slope);
    if (!std::isfinite(loss)) return take_back(loss);
    run(work::backward, b.rows, step, [&] {
      gpu_->store(slope, of().output_gradient());
      of().backward(x_of(b.rows), b.rows, {});
    });
    fetch_gradients();
    gpu_->synchronize();
  }
  return std::isfinite(loss) ? loss : take_back(loss);
}

/// A pass whose gradients are summed with other members' while earlier layers are still computed. The loss is
/// known first, so that no sum begins with an invalid minibatch.
EDL_INLINE double accelerator_trainer::train_for_sum(data::batch const& b, std::uint64_t step) {
  if (facts().loss_on_gpu) {
    run(work::training_for_sum, b.rows, step, [&] {
      forward_with_loss(b.rows, step);
      gpu_->download(loss_.span().data(), std::as_writable_bytes(mean_.span()));
      gpu_->mark(0);
      backward_for_sums(b.rows);
    });
    gpu_->await(0);
    return double(mean_.span()[0]);
  }
  std::span<float> slope;
  double const loss = loss_on_processor(b, step, slope);
  if (!std::isfinite(loss)) return take_back(loss);
  run(work::backward_for_sum, b.rows, step, [&] {
    gpu_->store(slope, of().output_gradient());
    backward_for_sums(b.rows);
  });
  return loss;
}

EDL_INLINE void accelerator_trainer::forward_with_loss(int rows, std::uint64_t step) {
  gpu_->move(state(), state_before_.span());
  forward(rows, mode::training, 0, step);
  view<float> const labels{samples_.labels(), std::size_t(rows) * facts().labels};
  auto const timed = time_loss();
  of().compute_loss(*gpu_, rows, last_, labels, of().output_gradient(), loss_.span());
  if (profile()) gpu_->synchronize();
}

/// Computes the loss and its gradient on the host. Sends the gradient to the GPU unless the loss is not
/// finite.
EDL_INLINE double accelerator_trainer::loss_on_processor(data::batch const& b, std::uint64_t step,
                                                         std::span<float>& slope) {
  gpu_->move(state(), state_before_.span());
  auto const y = results(b, mode::training, step);
  std::vector<float> host(y.size());
  double const loss = this->loss(b, y, host);
  slope = outputs_.span().first(host.size());
  if (std::isfinite(loss)) gpu_->write(host, slope);
  return loss;
}

EDL_INLINE void accelerator_trainer::backward_for_sums(int rows) {
  std::size_t next = borders_.size();
  announced_.clear();
  of().backward(x_of(rows), rows, [&](std::size_t first) {
    std::size_t const before = next;
    while (next > 0 && borders_[next - 1] >= first) --next;
    if (next == before) return;
    gpu_->mark(int(next) + 1);
    announced_.push_back(borders_[next]);
  });
  gpu_->subtract(state(), state_before_.span(), state_change_.span());
  gpu_->move(state_before_.span(), state());
  gpu_->mark(int(borders_.size()) + 1);
}

EDL_INLINE void accelerator_trainer::evaluate(data::batch const& b, std::span<double> totals) {
  if (b.rows == 0) return;
  std::lock_guard const turn(turn_);
  samples_.give(b);
  view<float> const y = results(b, mode::evaluation, 0);
  of().measure(totals, b.rows, y, b, of().loss(b.rows, y, b, {}));
}

EDL_INLINE view<float> accelerator_trainer::predict(data::batch const& b) {
  if (b.rows == 0) return {};
  std::lock_guard const turn(turn_);
  samples_.give(b);
  return results(b, mode::prediction, 0);
}

EDL_INLINE void accelerator_trainer::forward(int rows, mode what, std::size_t view_index,
                                             std::uint64_t step) {
  samples_.show(rows, what, view_index, x_.span().first(x_of(rows).size()));
  last_ = of().forward(x_of(rows), rows, what, step);
}

/// The network's outputs, on the host.
EDL_INLINE view<float> accelerator_trainer::results(data::batch const& b, mode what, std::uint64_t step) {
  bool const training = what == mode::training;
  if (what == mode::evaluation && facts().views_share < 1) return results_of_doubtful(b);
  std::size_t const n = std::size_t(b.rows) * facts().output.size(),
                    shown = training ? 1 : facts().views.size();
  auto const graph = training                   ? work::training
                     : what == mode::evaluation ? work::evaluation
                                                : work::prediction;
  run(graph, b.rows, step, [&] {
    for (std::size_t i = 0; i < shown; ++i) {
      forward(b.rows, what, i, step);
      gpu_->load(last_, outputs_.span().subspan(i * n, n));
    }
  });
  auto const host = results_.span().first(shown * n);
  gpu_->read(outputs_.span().first(host.size()), host);
  if (facts().averages && !training) join(facts().views, host);
  return host.first(n);
}

/// The outputs in an evaluation that computes further views of some rows. Each pass computes as many such
/// rows and views as fit.
EDL_INLINE view<float> accelerator_trainer::results_of_doubtful(data::batch const& b) {
  std::size_t const outputs = facts().output.size(), n = std::size_t(b.rows) * outputs;
  run(work::first_view, b.rows, 0, [&] {
    forward(b.rows, mode::evaluation, 0, 0);
    gpu_->load(last_, outputs_.span().first(n));
  });
  auto const results = results_.span().first(n);
  gpu_->read(outputs_.span().first(n), results);
  auto const rows = in_doubt(results);
  std::vector<float> of_rows(rows.size() * outputs * facts().views.size());
  for (std::size_t k = 0; k < rows.size(); ++k)
    std::copy_n(&results[rows[k] * outputs], outputs, &of_rows[k * outputs]);
  std::vector<std::uint32_t> shown, how;
  for (std::size_t first = rows.size(), all = rows.size() * facts().views.size(); first < all;) {
    std::size_t const count = std::min(all - first, std::size_t(max_batch()));
    shown.clear(), how.clear();
    for (std::size_t i = first; i < first + count; ++i)
      shown.push_back(rows[i % rows.size()]), how.push_back(std::uint32_t(i / rows.size()));
    samples_.choose(b, shown, how);
    auto const numbers = outputs_.span().first(count * outputs);
    run(work::chosen_views, int(count), 0, [&] {
      auto const x = x_.span().first(count * facts().input.size());
      samples_.show_chosen(int(count), mode::evaluation, x);
      gpu_->load(of().forward(x, int(count), mode::evaluation, 0), numbers);
    });
    gpu_->read(numbers, std::span(of_rows).subspan(first * outputs, numbers.size()));
    first += count;
  }
  if (!rows.empty()) join(facts().views, of_rows);
  for (std::size_t k = 0; k < rows.size(); ++k)
    std::copy_n(&of_rows[k * outputs], outputs, &results[rows[k] * outputs]);
  return results;
}

/// Runs work as a graph, unless layers are timed.
EDL_INLINE void accelerator_trainer::run(work what, int rows, std::uint64_t step,
                                         std::function<void()> const& issue) {
  if (profile())
    issue();
  else
    gpu_->replay(std::uint64_t(rows) << 8 | std::uint64_t(what), step, issue);
}

/// Restores the state after a pass that does not count: only the GPU has it.
EDL_INLINE double accelerator_trainer::take_back(double loss) {
  gpu_->move(state_before_.span(), state());
  return loss;
}

/// Copies the gradients to the host, for the keepers of the variables.
EDL_INLINE void accelerator_trainer::fetch_gradients() {
  if (resident_) return;
  gpu_->download(of().gradients().data(), std::as_writable_bytes(gradients_.span()));
  gpu_->download(state().data(), std::as_writable_bytes(variables_.span().subspan(facts().parameters)));
}

EDL_INLINE void accelerator_trainer::place(view<float> variables, view<float> slots, std::size_t stride) {
  std::lock_guard const turn(turn_);
  gpu_->use();
  away_ = false;
  gpu_->write(variables, of().variables());
  gpu_->refresh();
  slots_ = device_buffer<float>(gpu_, slots.size());
  gpu_->write(slots, slots_.span());
  gpu_->synchronize();
  slot_views_.clear();
  for (std::size_t at = 0; at < slots.size(); at += stride)
    slot_views_.push_back(slots_.span().subspan(at, facts().parameters));
  resident_ = true;
}

EDL_INLINE void accelerator_trainer::fetch(std::span<float> variables, std::span<float> slots) {
  std::lock_guard const turn(turn_);
  gpu_->use();
  gpu_->read(own(), variables);
  gpu_->read(slots_.span(), slots);
}

EDL_INLINE void accelerator_trainer::leave() {
  std::lock_guard const turn(turn_);
  resident_ = away_ = false;
}

EDL_INLINE void accelerator_trainer::step(float learning_rate, std::uint64_t step) {
  std::lock_guard const turn(turn_);
  gpu_->use();
  of().apply_optimizer(*gpu_, own().first(facts().parameters), of().gradients(), slot_views_, learning_rate,
                       step);
}

EDL_INLINE arena::summands accelerator_trainer::sum_with_others(std::vector<std::size_t> borders) {
  std::lock_guard const turn(turn_);
  borders_ = std::move(borders);
  if (state_change_.span().empty()) state_change_ = device_buffer<float>(gpu_, facts().state);
  return {gpu_, of().gradients(), state_change_.span()};
}

EDL_INLINE void accelerator_trainer::average(std::uint64_t records) {
  std::lock_guard const turn(turn_);
  gpu_->use();
  if (records == 0) return;
  gpu_->divide(of().gradients(), float(records));
  gpu_->add_divided(state_change_.span(), float(records), own().subspan(facts().parameters));
}

/// The arena's variables.
EDL_INLINE std::span<float> accelerator_trainer::own() { return away_ ? kept_.span() : of().variables(); }

}  // namespace edl::train
