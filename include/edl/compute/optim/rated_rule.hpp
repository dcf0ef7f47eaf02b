// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/optim/update_rule.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Another rule, which has other rates for parts of a model. `apply` has the rate itself, for it does not
/// know where its span lies.
class rated_rule final : public update_rule {
 public:
  /// `of` outlives this.
  rated_rule(update_rule const& of, std::vector<rated_range> rated) : rule_(of), rated_(std::move(rated)) {}

  std::vector<std::string> slots() const override { return rule_.slots(); }
  float initial(std::size_t slot) const override { return rule_.initial(slot); }
  float learning_rate(std::uint64_t version) const override { return rule_.learning_rate(version); }
  void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    rule_.apply(weights, gradients, slots, learning_rate, step);
  }
  void apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                std::span<std::span<float> const> slots, float learning_rate,
                std::uint64_t step) const override;
  update_rule const& of_table(std::size_t number) const override { return rule_.of_table(number); }
  view<std::size_t> borders() const override { return rule_.borders(); }

 private:
  update_rule const& rule_;
  std::vector<rated_range> rated_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/rated_rule.ipp"
#endif
