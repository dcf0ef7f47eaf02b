// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/optim/update_rule.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Another rule, which beside each weight w keeps an exponential moving average of it. After step number t,
/// from 1, that is the mean of w_1 … w_t, of which w_i weighs `decay` to the power t − i. The initial weights
/// are no part of it (the bias correction of Kingma and Ba, "Adam", ICLR 2015, section 3). The last slot,
/// "average_less_weight", is what the average is more than the weight. It is zero before the first step.
/// Where a checkpoint lacks it, zero lets the average begin at the weights. In float32 the difference keeps
/// small changes that an average would round away.
/// With a `decay` of 0 this is the other rule.
class moving_average final : public update_rule {
 public:
  static constexpr char const* slot_name = "average_less_weight";

  /// `of` outlives this. Throws edl::error unless 0 ≤ `decay` < 1.
  moving_average(update_rule const& of, double decay);

  bool averages() const { return decay_ > 0; }

  std::vector<std::string> slots() const override;
  float initial(std::size_t slot) const override;
  float learning_rate(std::uint64_t version) const override { return rule_.learning_rate(version); }
  void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    apply_at(0, weights, gradients, slots, learning_rate, step);
  }
  void apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                std::span<std::span<float> const> slots, float learning_rate,
                std::uint64_t step) const override;
  update_rule const& of_table(std::size_t number) const override { return rule_.of_table(number); }
  view<std::size_t> borders() const override { return rule_.borders(); }

  /// How much of the average is kept by step number `step`, from 0.
  double kept_after(std::uint64_t step) const;

 private:
  update_rule const& rule_;
  double decay_;
  std::size_t others_;  // slots of the other rule
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/moving_average.ipp"
#endif
