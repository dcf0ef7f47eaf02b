// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/device/pinned.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/job/train/trainers/gpu_rows.hpp"
#include "edl/job/train/trainers/gpu_samples.hpp"
#include "edl/job/train/trainers/learning_trainer.hpp"

namespace edl::train {

/// A learner as the runtime's `trainer`, on a GPU. A step is one graph there, from the minibatch's features
/// to the gradients; in the `arena`, a second graph makes the optimiser's step. A loss that the GPU does not
/// support is computed on the processor, between two graphs; an optimiser by the keeper of the variables.
class accelerator_trainer final : public learning_trainer, private arena {
 public:
  /// `on`: the learner's device.
  accelerator_trainer(std::unique_ptr<learner> of, std::shared_ptr<accelerator> on,
                      worker::trainer_options const& o);

  std::string device() const override { return gpu_->describe(); }
  int idle_threads() const override { return threads_; }
  data::batch make_batch() const override;
  std::string expect(std::uint64_t training, std::uint64_t evaluation) override;
  bool has(data::batch& b) const override;

  std::span<float> variables() override { return variables_.span(); }
  view<float> gradients() const override { return gradients_.span(); }
  void give_rows(data::batch& b, sparse::minibatch_rows const& rows) override;
  std::span<sparse::row_gradients const> row_gradients(data::batch const& b,
                                                       sparse::minibatch_rows& rows) override;
  void variables_written() override;
  void resume() override;
  /// Null if features are rows of tables, which stay with the process that makes their steps.
  edl::arena* arena() override { return facts().optimizer_on_gpu && !has_tables() ? this : nullptr; }

  double train(data::batch const& b, std::uint64_t step, worker::gradients_ready const& ready) override;
  void evaluate(data::batch const& b, std::span<double> totals) override;
  view<float> predict(data::batch const& b) override;

 private:
  /// The kind of a graph, besides its number of rows.
  enum class work : std::uint8_t {
    training,
    evaluation,
    prediction,
    backward,
    training_for_sum,
    backward_for_sum,
    first_view,
    chosen_views
  };

  void place(view<float> variables, view<float> slots, std::size_t stride) override;
  void fetch(std::span<float> variables, std::span<float> slots) override;
  void leave() override;
  void step(float learning_rate, std::uint64_t step) override;
  summands sum_with_others(std::vector<std::size_t> borders) override;
  void average(std::uint64_t records) override;

  bool has_tables() const { return facts().embeddings.ids > 0; }
  device_buffer<float> samples(std::size_t of_one) {
    return device_buffer<float>(gpu_, std::size_t(max_batch()) * of_one);
  }
  view<float> x_of(int rows) { return x_.span().first(std::size_t(rows) * facts().input.size()); }
  std::span<float> state() { return of().variables().subspan(facts().parameters); }
  std::span<float> own();

  void forward(int rows, mode what, std::size_t view_index, std::uint64_t step);
  void forward_with_loss(int rows, std::uint64_t step);
  void backward_for_sums(int rows);
  double train_alone(data::batch const& b, std::uint64_t step);
  double train_for_sum(data::batch const& b, std::uint64_t step);
  double loss_on_processor(data::batch const& b, std::uint64_t step, std::span<float>& slope);
  view<float> results(data::batch const& b, mode what, std::uint64_t step);
  view<float> results_of_doubtful(data::batch const& b);
  void run(work what, int rows, std::uint64_t step, std::function<void()> const& issue);
  double take_back(double loss);
  void fetch_gradients();

  int threads_;
  std::shared_ptr<accelerator> gpu_;
  gpu_samples samples_;
  gpu_rows rows_;
  worker::keep_samples keep_;
  device_buffer<float> x_, outputs_, loss_, state_before_, state_change_, kept_, slots_;
  pinned_buffer variables_, gradients_, results_, mean_;
  std::vector<std::span<float>> slot_views_;
  view<float> last_;
  std::vector<std::size_t> borders_;    // of sums with others; empty: no sums
  std::vector<std::size_t> announced_;  // by a pass, of these
  std::mutex turn_;                     // for the GPU: a worker's thread, or a reader of its arena
  bool resident_ = false;
  bool away_ = false;  // the network's variables are others than the arena's, which are `kept_`
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/accelerator_trainer.ipp"
#endif
