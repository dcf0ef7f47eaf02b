// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/optim/decay.hpp"
#include "edl/optim/optimizer.hpp"
#include "edl/optim/schedule.hpp"
#include "edl/optim/update_rule.hpp"

namespace edl {

/// An optimiser and a schedule as the runtime sees them. Without a schedule the optimiser's own rate holds.
template <optimizer Optimizer, learning_rate_schedule Schedule = constant_rate>
class rule final : public update_rule {
 public:
  explicit rule(Optimizer o)
    requires std::same_as<Schedule, constant_rate>
      : rule(o, constant_rate{o.learning_rate}) {}
  /// `biases`: those of the model, for an optimiser that spares them.
  rule(Optimizer o, Schedule s, std::vector<element_range> biases = {})
      : optimizer_(std::move(o)), schedule_(std::move(s)) {
    if (spares_biases(optimizer_)) spared_ = std::move(biases);
  }

  std::vector<std::string> slots() const override {
    std::vector<std::string> names;
    for (slot const& s : slot_list(optimizer_.slots())) names.emplace_back(s.name);
    return names;
  }

  float initial(std::size_t slot) const override { return slot_list(optimizer_.slots())[slot].initial; }

  float learning_rate(std::uint64_t version) const override { return float(schedule_(version)); }

  void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    optimizer_.apply(weights, gradients, slots, learning_rate, step);
  }

  void apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                std::span<std::span<float> const> slots, float learning_rate,
                std::uint64_t step) const override {
    if (spared_.empty()) return apply(weights, gradients, slots, learning_rate, step);
    step_in_parts(optimizer_, spared_, first, weights, gradients, slots,
                  [&](Optimizer const& o, std::span<float> w, view<float> g, auto s) {
                    o.apply(w, g, s, learning_rate, step);
                  });
  }

 private:
  Optimizer optimizer_;
  Schedule schedule_;
  std::vector<element_range> spared_;
};

template <class Optimizer>
rule(Optimizer) -> rule<Optimizer>;

}  // namespace edl
