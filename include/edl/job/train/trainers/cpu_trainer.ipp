// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "edl/compute/device/exact_products.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/names.hpp"
#include "edl/job/train/trainers/cpu_trainer.hpp"

namespace edl::train {

EDL_INLINE cpu_trainer::cpu_trainer(std::unique_ptr<learner> of, std::shared_ptr<cpu> on,
                                    worker::trainer_options const& o, std::string no_gpu)
    : learning_trainer(std::move(of), o),
      cpu_(std::move(on)),
      no_gpu_(std::move(no_gpu)),
      compares_(o.compares && cpu_->precision() != precision::float32) {}

EDL_INLINE std::string cpu_trainer::device() const {
  bool const exact = cpu_->precision() == precision::float32;
  std::string const how =
      exact ? "the processor" : fmt::format("the processor, {}", name_of(cpu_->precision()));
  if (!no_gpu_.empty()) return how + ", because no GPU is available: " + no_gpu_;
  return exact ? std::string() : how;
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
  double const loss = this->loss(b, outputs, of().output_gradient());
  if (std::isfinite(loss)) of().backward(features(b), b.rows, ready);
  return loss;
}

EDL_INLINE void cpu_trainer::evaluate(data::batch const& b, std::span<double> totals) {
  if (b.rows == 0) return;
  std::size_t const own = facts().totals;
  invariant(totals.size() == (compares_ ? 2 : 1) * own, "each precision that is compared has its totals");
  auto const measure = [&](std::span<double> to) {
    view<float> const outputs = results(b, mode::evaluation);
    of().measure(to, b.rows, outputs, b, of().loss(b.rows, outputs, b, {}));
  };
  measure(totals.first(own));
  if (!compares_) return;
  exact_products const exact(*cpu_, true);
  measure(totals.subspan(own));
}

EDL_INLINE void cpu_trainer::inspect(data::batch const& b, visit_row const& visit) {
  if (b.rows == 0) return;
  if (!one_) one_ = make_batch();
  one_->rows = 1;
  view<float> const outputs = results(b, mode::evaluation);
  std::size_t const n = facts().output.size();
  for (std::size_t row = 0; row < std::size_t(b.rows); ++row) {
    std::copy_n(b.targets.begin() + std::ptrdiff_t(row * b.target_size), b.target_size,
                one_->targets.begin());
    std::copy_n(b.classes.begin() + std::ptrdiff_t(row * b.class_size), b.class_size, one_->classes.begin());
    view<float> const own = outputs.subspan(row * n, n);
    visit(int(row), of().loss(1, own, *one_, {}), own);
  }
}

EDL_INLINE view<float> cpu_trainer::predict(data::batch const& b) {
  if (b.rows == 0) return {};
  return results(b, mode::prediction);
}

/// The network's outputs, averaged over all views that the model wants.
EDL_INLINE view<float> cpu_trainer::results(data::batch const& b, mode what) {
  if (!facts().averages) return of().forward(features(b), b.rows, what, 0);
  auto const views = facts().views;
  std::size_t const size = facts().input.size(), outputs = facts().output.size();
  shown_.resize(std::size_t(b.rows) * size);
  auto const say = [&](std::size_t i, std::span<std::uint32_t const> rows, float* to) {
    placement const how = views[i].placed();
    auto const shown = std::span(shown_).first(rows.size() * size);
    for (std::size_t k = 0; k < rows.size(); ++k)
      edl::place(facts().input, features(b).subspan(rows[k] * size, size), how,
                 shown.subspan(k * size, size));
    std::ranges::copy(of().forward(shown, int(rows.size()), what, 0), to);
  };
  std::vector<std::uint32_t> rows(std::size_t(b.rows));
  std::iota(rows.begin(), rows.end(), 0u);
  first_said_.resize(rows.size() * outputs);
  say(0, rows, first_said_.data());
  if (what == mode::evaluation) rows = in_doubt(first_said_);
  std::size_t const n = rows.size() * outputs;
  said_.resize(n * views.size());
  for (std::size_t k = 0; k < rows.size(); ++k)
    std::copy_n(&first_said_[rows[k] * outputs], outputs, &said_[k * outputs]);
  invariant(rows.size() <= std::size_t(b.rows), "views that are asked for again are of the minibatch");
  for (std::size_t i = 1; i < views.size() && n > 0; ++i) say(i, rows, &said_[i * n]);
  join(views, said_);
  for (std::size_t k = 0; k < rows.size(); ++k)
    std::copy_n(&said_[k * outputs], outputs, &first_said_[rows[k] * outputs]);
  return first_said_;
}

}  // namespace edl::train
