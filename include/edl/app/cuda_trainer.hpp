// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/app/gpu_samples.hpp"
#include "edl/app/model_feeder.hpp"
#include "edl/device/cuda.hpp"
#include "edl/nn/loss/on_cuda.hpp"
#include "edl/nn/model.hpp"
#include "edl/nn/trace.hpp"
#include "edl/optim/arena.hpp"
#include "edl/optim/on_cuda.hpp"

namespace edl::app {

/// A user's Model as the runtime's `trainer`, on a GPU. A step is one graph there, from the minibatch's
/// features to the gradients; in the `arena`, a second piece of work makes the optimiser's step. A loss or an
/// optimiser that the GPU does not know is computed on the processor, between two graphs and by whoever keeps
/// the variables.
template <class Model>
class cuda_trainer final : public model_feeder<Model>, private arena {
  using feeder = model_feeder<Model>;
  using traits = model_traits<Model>;
  using network = model<Model::network, cuda>;
  using feeder::features, feeder::truth, feeder::output, feeder::classes, feeder::labels;
  static constexpr bool knows_loss = nn::computes_on_cuda<typename traits::loss_type>;
  static constexpr bool knows_optimizer = optimizes_on_cuda<typename traits::optimizer_type>;

 public:
  /// Throws cuda_unavailable where no GPU is to be had.
  explicit cuda_trainer(worker::trainer_options const& o)
      : feeder(o),
        threads_(o.device.threads),
        net_({.max_batch = o.max_batch, .seed = o.seed, .device = o.cuda, .keep = o.keep}),
        gpu_(net_.device()),
        samples_(gpu_, sample_options(o)),
        keep_(o.samples),
        x_(samples(network::input.size())),
        outputs_(samples(looks * output.size())),
        loss_(allocate(gpu_, 1)),
        state_before_(allocate(gpu_, network::state_count)),
        variables_(gpu_.backend(), net_.variables().size()),
        gradients_(gpu_.backend(), network::parameter_count),
        results_(gpu_.backend(), std::size_t(o.max_batch) * looks * output.size()),
        mean_(gpu_.backend(), 1) {
    download(gpu_, net_.variables(), variables_.span());
    if (o.profile) net_.set_trace(&trace_.emplace(traced_calls));
  }

  std::string device() const override { return gpu_->describe(); }
  int idle_threads() const override { return threads_; }

  data::batch make_batch() const override {
    auto b = feeder::make_batch();
    auto const all = {pin(gpu_.backend(), std::as_bytes(std::span(b.features))),
                      pin(gpu_.backend(), std::as_bytes(std::span(b.targets))),
                      pin(gpu_.backend(), std::as_bytes(std::span(b.classes)))};
    if (traits::places) b.placements.resize(std::size_t(b.capacity));
    b.guard = std::make_shared<std::vector<std::shared_ptr<void>>>(all);
    return b;
  }

  std::string expect(std::uint64_t training, std::uint64_t evaluation) override {
    return samples_.keep(keep_, training, evaluation);
  }

  bool has(data::batch& b) const override {
    if (!samples_.has(b)) return false;
    if (b.identity.m == mode::training)
      for (int row = 0; row < int(b.records.size()); ++row) feeder::place(b, row);
    return true;
  }

  std::span<float> variables() override { return variables_.span(); }
  view<float> gradients() const override { return gradients_.span(); }
  void variables_written() override {
    std::lock_guard const turn(turn_);
    if (resident_ && !std::exchange(away_, true)) {
      if (kept_.span().empty()) kept_ = allocate(gpu_, net_.variables().size());
      gpu_->move(net_.variables(), kept_.span());
    }
    gpu_->upload(std::as_bytes(variables_.span()), net_.variables().data());
    gpu_->refresh();
    gpu_->synchronize();
  }

  void resume() override {
    std::lock_guard const turn(turn_);
    if (!std::exchange(away_, false)) return;
    gpu_->move(kept_.span(), net_.variables());
    gpu_->refresh();
  }

  edl::arena* arena() override { return knows_optimizer ? this : nullptr; }
  nn::trace const* profile() const override { return trace_ ? &*trace_ : nullptr; }

  double train(data::batch const& b, std::uint64_t step, worker::gradients_ready const& ready) override {
    if (!borders_.empty() && b.rows > 0) {
      double const loss = train_for_sum(b, step);
      if (ready && std::isfinite(loss))
        for (std::size_t const first : announced_) ready(first);
      return loss;
    }
    std::lock_guard const turn(turn_);
    if (b.rows == 0) {
      std::ranges::fill(gradients_.span(), 0.0f);
      upload(gpu_, gradients_.span(), net_.gradients());
      return 0;
    }
    samples_.give(b);
    double loss = 0;
    if constexpr (knows_loss) {
      run(mode::training, b.rows, step, [&] {
        gpu_->move(net_.state(), state_before_.span());
        forward(b.rows, mode::training, 0, step);
        nn::compute_loss(gpu_, traits::loss, output, b.rows, last_, labels_of(b.rows), net_.output_gradient(),
                         loss_.span());
        net_.backward(x_of(b.rows), b.rows);
      });
      gpu_->download(loss_.span().data(), std::as_writable_bytes(mean_.span()));
      fetch_gradients();
      gpu_->synchronize();
      loss = double(mean_.span()[0]);
    } else {
      gpu_->move(net_.state(), state_before_.span());
      auto const y = results(b, mode::training, step);
      std::vector<float> slope(y.size());
      loss = traits::loss(output, b.rows, y, truth(b), std::span(slope));
      if (!std::isfinite(loss)) return take_back(loss);
      auto const there = outputs_.span().first(slope.size());
      upload(gpu_, slope, there);
      run(backward_alone, b.rows, step, [&] {
        gpu_->store(there, net_.output_gradient());
        net_.backward(x_of(b.rows), b.rows);
      });
      fetch_gradients();
      gpu_->synchronize();
    }
    return std::isfinite(loss) ? loss : take_back(loss);
  }

  void evaluate(data::batch const& b, std::span<double> sums) override {
    if (b.rows == 0) return;
    std::lock_guard const turn(turn_);
    samples_.give(b);
    view<float> const y = results(b, mode::evaluation, 0);
    double const loss = traits::loss(output, b.rows, y, truth(b), std::span<float>{});
    traits::metrics::update(sums, output, b.rows, y, truth(b), loss);
  }

  view<float> predict(data::batch const& b) override {
    if (b.rows == 0) return {};
    std::lock_guard const turn(turn_);
    samples_.give(b);
    return results(b, mode::prediction, 0);
  }

 private:
  static constexpr std::size_t traced_calls = 20'000;
  static constexpr int backward_alone = 3, for_sum = 4, backward_for_sum = 5;  // beside the modes

  static constexpr std::size_t looks = traits::evaluation.looks.size();

  static gpu_sample_options sample_options(worker::trainer_options const& o) {
    gpu_sample_options of{.input = network::input,
                          .labels = labels,
                          .max_batch = o.max_batch,
                          .placed = traits::places,
                          .exact = Model::network.of_ids,
                          .fed_alike = traits::places || !traits::augments};
    if constexpr (traits::averages)
      for (look const& l : traits::evaluation.looks) of.looks.push_back(l.placed());
    return of;
  }

  cuda_buffer samples(std::size_t of_one) { return allocate(gpu_, std::size_t(net_.max_batch()) * of_one); }
  view<float> x_of(int rows) { return x_.span().first(std::size_t(rows) * network::input.size()); }
  view<float> labels_of(int rows) { return {samples_.labels(), std::size_t(rows) * labels}; }

  void forward(int rows, mode what, std::size_t look, std::uint64_t step) {
    auto const x = x_.span().first(std::size_t(rows) * network::input.size());
    samples_.show(rows, what, look, x);
    last_ = net_.forward(x, rows, what, step);
  }

  /// What the network says, on the host.
  view<float> results(data::batch const& b, mode what, std::uint64_t step) {
    std::size_t const n = std::size_t(b.rows) * output.size(), shown = what == mode::training ? 1 : looks;
    run(what, b.rows, step, [&] {
      for (std::size_t i = 0; i < shown; ++i) {
        forward(b.rows, what, i, step);
        gpu_->load(last_, outputs_.span().subspan(i * n, n));
      }
    });
    auto const host = results_.span().first(shown * n);
    download(gpu_, outputs_.span().first(host.size()), host);
    if (traits::averages && what != mode::training) traits::evaluation.join(host);
    return host.first(n);
  }

  /// As a graph, unless layers are timed.
  template <class What>
  void run(What what, int rows, std::uint64_t step, std::function<void()> const& work) {
    if (trace_)
      work();
    else
      gpu_->replay(std::uint64_t(rows) << 8 | std::uint64_t(what), step, work);
  }

  /// A pass that nobody will count has moved the state, which is kept nowhere else.
  double take_back(double loss) {
    gpu_->move(state_before_.span(), net_.state());
    return loss;
  }

  /// A pass whose gradients are summed with others' while those of the layers before are computed. The loss
  /// is known before them: no sum begins with a minibatch that does not count.
  double train_for_sum(data::batch const& b, std::uint64_t step) {
    std::lock_guard const turn(turn_);
    samples_.give(b);
    if constexpr (knows_loss) {
      run(for_sum, b.rows, step, [&] {
        gpu_->move(net_.state(), state_before_.span());
        forward(b.rows, mode::training, 0, step);
        nn::compute_loss(gpu_, traits::loss, output, b.rows, last_, labels_of(b.rows), net_.output_gradient(),
                         loss_.span());
        gpu_->download(loss_.span().data(), std::as_writable_bytes(mean_.span()));
        gpu_->mark(0);
        backward_for_sums(b.rows);
      });
      gpu_->await(0);
      return double(mean_.span()[0]);
    } else {
      gpu_->move(net_.state(), state_before_.span());
      auto const y = results(b, mode::training, step);
      std::vector<float> slope(y.size());
      double const loss = traits::loss(output, b.rows, y, truth(b), std::span(slope));
      if (!std::isfinite(loss)) return take_back(loss);
      auto const there = outputs_.span().first(slope.size());
      upload(gpu_, slope, there);
      run(backward_for_sum, b.rows, step, [&] {
        gpu_->store(there, net_.output_gradient());
        backward_for_sums(b.rows);
      });
      return loss;
    }
  }

  void backward_for_sums(int rows) {
    std::size_t next = borders_.size();
    announced_.clear();
    net_.backward(x_of(rows), rows, [&](std::size_t first) {
      std::size_t const before = next;
      while (next > 0 && borders_[next - 1] >= first) --next;
      if (next == before) return;
      gpu_->mark(int(next) + 1);
      announced_.push_back(borders_[next]);
    });
    gpu_->subtract(net_.state(), state_before_.span(), state_change_.span());
    gpu_->move(state_before_.span(), net_.state());
    gpu_->mark(int(borders_.size()) + 1);
  }

  /// For those who keep the variables.
  void fetch_gradients() {
    if (resident_) return;
    auto const state = variables_.span().subspan(network::parameter_count);
    gpu_->download(net_.gradients().data(), std::as_writable_bytes(gradients_.span()));
    gpu_->download(net_.state().data(), std::as_writable_bytes(state));
  }

  void place(view<float> variables, view<float> slots, std::size_t stride) override {
    std::lock_guard const turn(turn_);
    gpu_->use();
    away_ = false;
    upload(gpu_, variables, net_.variables());
    gpu_->refresh();
    slots_ = allocate(gpu_, slots.size());
    upload(gpu_, slots, slots_.span());
    gpu_->synchronize();
    slot_views_.clear();
    for (std::size_t at = 0; at < slots.size(); at += stride)
      slot_views_.push_back(slots_.span().subspan(at, network::parameter_count));
    resident_ = true;
  }

  void fetch(std::span<float> variables, std::span<float> slots) override {
    std::lock_guard const turn(turn_);
    gpu_->use();
    download(gpu_, own(), variables);
    download(gpu_, slots_.span(), slots);
  }

  void leave() override {
    std::lock_guard const turn(turn_);
    resident_ = away_ = false;
  }

  void step(float learning_rate, std::uint64_t step) override {
    std::lock_guard const turn(turn_);
    gpu_->use();
    if constexpr (knows_optimizer)
      edl::apply(gpu_, traits::optimizer, own().first(network::parameter_count), net_.gradients(),
                 slot_views_, learning_rate, step);
  }

  summands sum_with_others(std::vector<std::size_t> borders) override {
    std::lock_guard const turn(turn_);
    borders_ = std::move(borders);
    if (state_change_.span().empty()) state_change_ = allocate(gpu_, network::state_count);
    return {gpu_.backend(), net_.gradients(), state_change_.span()};
  }

  void average(std::uint64_t records) override {
    std::lock_guard const turn(turn_);
    gpu_->use();
    if (records == 0) return;
    gpu_->divide(net_.gradients(), float(records));
    gpu_->add_divided(state_change_.span(), float(records), own().subspan(network::parameter_count));
  }

  /// The variables that the arena holds.
  std::span<float> own() { return away_ ? kept_.span() : net_.variables(); }

  int threads_;
  network net_;
  cuda& gpu_;
  gpu_samples samples_;
  worker::keep_samples keep_;
  cuda_buffer x_, outputs_, loss_, state_before_, state_change_, kept_, slots_;
  pinned_buffer variables_, gradients_, results_, mean_;
  std::vector<std::span<float>> slot_views_;
  view<float> last_;
  std::vector<std::size_t> borders_;    // of sums with others: none are made if it is empty
  std::vector<std::size_t> announced_;  // by a pass, of these
  std::mutex turn_;                     // of who uses the GPU: a worker's thread, or who reads its arena
  bool resident_ = false;
  bool away_ = false;  // the network's variables are others than the arena's, which are `kept_`
  std::optional<nn::trace> trace_;
};

}  // namespace edl::app
