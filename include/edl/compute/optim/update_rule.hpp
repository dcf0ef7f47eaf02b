// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// An optimiser as the runtime sees it, whatever the model: a pure function on spans. One virtual call per
/// span and step, so that servers and workers are compiled once. Thread safety: const, safe.
class update_rule {
 public:
  virtual ~update_rule() = default;

  /// Names of the slots, in order ("momentum"; "m", "v", …). As many spans of slots go into `apply`.
  virtual std::vector<std::string> slots() const = 0;

  /// What the elements of a slot are before the first step.
  virtual float initial(std::size_t slot) const = 0;

  /// The learning rate at a model version: the schedule, or the optimiser's own rate.
  virtual float learning_rate(std::uint64_t version) const = 0;

  /// One step. `step` is the number of steps already applied, from 0. All spans are as long as `weights`.
  virtual void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
                     float learning_rate, std::uint64_t step) const = 0;

  /// `apply` on a model's parameters from number `first` on, some of which may be spared by the rule
  /// (`spared_from_decay`). Any cut of them into spans that `borders` permits gives the same bits.
  virtual void apply_at([[maybe_unused]] std::size_t first, std::span<float> weights, view<float> gradients,
                        std::span<std::span<float> const> slots, float learning_rate,
                        std::uint64_t step) const {
    apply(weights, gradients, slots, learning_rate, step);
  }

  /// The rule of the rows of a table, by its number in the layout. It lives as long as this.
  virtual update_rule const& of_table(std::size_t number) const {
    (void)number;
    return *this;
  }

  /// Where spans of `apply_at` begin and end, for an optimiser of whole variables; empty: anywhere.
  virtual view<std::size_t> borders() const { return {}; }

  /// Throws error for an option that does not go with the model, as a name that no variable has.
  virtual void check(parameter_layout const& layout) const { (void)layout; }

  /// How a rule with much to do in a step shares it among threads. To be called before any step.
  virtual void share(work_sharing by) { (void)by; }
};

}  // namespace edl
