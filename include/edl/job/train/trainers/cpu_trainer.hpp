// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/job/train/trainers/learning_trainer.hpp"

namespace edl::train {

/// A learner as the runtime's `trainer`, on the processor.
class cpu_trainer final : public learning_trainer {
 public:
  /// `on`: the learner's device. `no_gpu`: why no GPU is used, if the user may expect one.
  cpu_trainer(std::unique_ptr<learner> of, std::shared_ptr<cpu> on, worker::trainer_options const& o,
              std::string no_gpu);

  std::string device() const override;
  std::span<float> variables() override { return of().variables(); }
  void variables_written() override { cpu_->kernels_written(); }
  view<float> gradients() const override { return of().gradients(); }
  std::span<float> gradients_to_change() override { return of().gradients(); }
  void share(std::function<void(int)> const& work) override;
  double train(data::batch const& b, std::uint64_t step, worker::gradients_ready const& ready) override;
  void evaluate(data::batch const& b, std::span<double> totals) override;
  void inspect(data::batch const& b, visit_row const& visit) override;
  /// Twice the metrics' number if float32 results are reported, too.
  std::size_t totals() const override { return facts().totals * (compares_ ? 2 : 1); }
  view<float> predict(data::batch const& b) override;

 private:
  view<float> results(data::batch const& b, mode what);

  std::shared_ptr<cpu> cpu_;
  std::vector<float> shown_, first_said_, said_;  // a view of a minibatch, and what is said on it and on all
  std::optional<data::batch> one_;                // a record by itself
  std::string no_gpu_;
  bool compares_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/cpu_trainer.ipp"
#endif
