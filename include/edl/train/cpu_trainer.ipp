// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/device/placement.hpp"
#include "edl/train/cpu_trainer.hpp"

namespace edl::train {

EDL_INLINE cpu_trainer::cpu_trainer(std::unique_ptr<learner> of, std::shared_ptr<cpu> on,
                                    worker::trainer_options const& o, std::string no_gpu)
    : learning_trainer(std::move(of), o), cpu_(std::move(on)), no_gpu_(std::move(no_gpu)) {}

EDL_INLINE std::string cpu_trainer::device() const {
  std::string const how = cpu_->rounds() ? "the processor, bfloat16" : "the processor";
  if (!no_gpu_.empty()) return how + ", as no GPU is to be had: " + no_gpu_;
  return cpu_->rounds() ? how : "";
}

EDL_INLINE void cpu_trainer::share(std::function<void(int)> const& work) {
  auto& team = cpu_->team();
  team.run(team.size(), work);
}

EDL_INLINE double cpu_trainer::train(data::batch const& b, std::uint64_t step,
                                     worker::gradients_ready const& ready) {
  if (b.rows == 0) {
    std::ranges::fill(of().gradients(), 0.0f);
    return 0;
  }
  view<float> const outputs = of().forward(features(b), b.rows, mode::training, step);
  double const loss = of().loss(b.rows, outputs, b, of().output_gradient());
  if (std::isfinite(loss)) of().backward(features(b), b.rows, ready);
  return loss;
}

EDL_INLINE void cpu_trainer::evaluate(data::batch const& b, std::span<double> totals) {
  if (b.rows == 0) return;
  view<float> const outputs = results(b, mode::evaluation);
  double const loss = of().loss(b.rows, outputs, b, {});
  of().measure(totals, b.rows, outputs, b, loss);
}

EDL_INLINE view<float> cpu_trainer::predict(data::batch const& b) {
  if (b.rows == 0) return {};
  return results(b, mode::prediction);
}

/// What the network says, on all the views that the model wants.
EDL_INLINE view<float> cpu_trainer::results(data::batch const& b, mode what) {
  if (!facts().averages) return of().forward(features(b), b.rows, what, 0);
  auto const views = facts().views;
  std::size_t const size = facts().input.size(), n = std::size_t(b.rows) * facts().output.size();
  shown_.resize(std::size_t(b.rows) * size);
  said_.resize(n * views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    placement const how = views[i].placed();
    for (std::size_t row = 0; row < std::size_t(b.rows); ++row)
      edl::place(facts().input, features(b).subspan(row * size, size), how,
                 std::span(shown_).subspan(row * size, size));
    std::ranges::copy(of().forward(shown_, b.rows, what, 0), said_.begin() + std::ptrdiff_t(i * n));
  }
  join(views, said_);
  return view<float>(said_).first(n);
}

}  // namespace edl::train
