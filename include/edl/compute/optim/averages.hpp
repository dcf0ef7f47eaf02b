// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/span.hpp"

namespace edl {

namespace detail {

/// slow ← keep · slow + (1 − keep) · weights, and weights ← slow. For float and double.
template <std::floating_point T>
void look_back(std::span<T> weights, std::span<T> slow, T keep);

}  // namespace detail

/// Another optimiser, which after every `every` steps averages with slow weights: slow ← k · slow + (1 − k) ·
/// w, w ← slow. (Zhang, Lucas, Hinton and Ba, "Lookahead optimizer", NeurIPS 2019.) With `steps`, k grows to
/// `keep` with the cube of the completed share of them. The last of them sets the weights to the slow
/// weights. (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024.) Without, k is `keep`:
/// `lookahead<sgd>{.optimizer = {.momentum = 0.9f}, .keep = 0.5f}`.
template <class Optimizer>
struct lookahead {
  static_assert(sizeof(is_an_optimizer<Optimizer>) > 0);

  Optimizer optimizer;
  std::uint64_t every = 5;
  float keep = 0.5f;
  std::uint64_t steps = 0;
  float learning_rate = optimizer.learning_rate;

  /// The other optimiser's slots, and "slow".
  constexpr slot_list slots() const {
    slot_list all = optimizer.slots();
    all.slots[all.count++] = slot{"slow"};
    return all;
  }

  constexpr bool options_fit() const {
    return edl::options_fit(optimizer) && is_amount(learning_rate) && every > 0 && keep >= 0 && keep <= 1;
  }

  /// The weight of the slow weights after step number `step`, from 0; below 0: no averaging.
  constexpr float kept_after(std::uint64_t step) const {
    std::uint64_t const made = step + 1;
    if (steps > 0 && made == steps) return 1;
    if (made % every != 0) return -1;
    if (steps == 0 || made > steps) return keep;
    double const share = double(made) / double(steps);
    return float(double(keep) * share * share * share);
  }

  /// One step; see `optimizer`.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const
    requires edl::optimizer<Optimizer>
  {
    std::span<T> const slow = slots.back();
    if (step == 0) std::ranges::copy(weights, slow.begin());
    optimizer.template apply<T>(weights, gradients, slots.first(slots.size() - 1), rate, step);
    if (T const k = T(kept_after(step)); k >= 0) detail::look_back<T>(weights, slow, k);
  }

  /// The same with another optimiser of whole variables; see `whole_optimizer`.
  template <std::floating_point T>
  void apply_whole(variable const& v, std::span<T> weights, view<T> gradients,
                   std::span<std::span<T> const> slots, T rate, std::uint64_t step) const
    requires whole_optimizer<Optimizer>
  {
    std::span<T> const slow = slots.back();
    if (step == 0) std::ranges::copy(weights, slow.begin());
    optimizer.template apply_whole<T>(v, weights, gradients, slots.first(slots.size() - 1), rate, step);
    if (T const k = T(kept_after(step)); k >= 0) detail::look_back<T>(weights, slow, k);
  }

  /// The other optimiser's check of a model.
  void check(parameter_layout const& layout) const
    requires requires(Optimizer const& o) { o.check(layout); }
  {
    optimizer.check(layout);
  }
};

/// Another rule, which also computes an exponential moving average of each weight w. After step number t,
/// from 1, that is the mean of w_1 … w_t, where w_i has the weight `decay` to the power t − i. The initial
/// weights are not included (the bias correction of Kingma and Ba, "Adam", ICLR 2015, section 3). The last
/// slot, "average_less_weight", is the average minus the weight. It is zero before the first step; if a
/// checkpoint lacks it, zero makes the average start at the weights. In float32 the difference preserves
/// small changes that an average would round away. With a `decay` of 0 this is the other rule.
class moving_average final : public update_rule {
 public:
  static constexpr char const* slot_name = "average_less_weight";

  /// `of` must outlive this. Throws edl::error unless 0 ≤ `decay` < 1.
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

  /// The weight of the previous average in step number `step`, from 0.
  double kept_after(std::uint64_t step) const;

 private:
  update_rule const& rule_;
  double decay_;
  std::size_t others_;  // slots of the other rule
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/averages.ipp"
#endif
