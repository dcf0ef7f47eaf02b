// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/optim/rated_rule.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE void rated_rule::apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                                     std::span<std::span<float> const> slots, float learning_rate,
                                     std::uint64_t step) const {
  if (rated_.empty()) return rule_.apply_at(first, weights, gradients, slots, learning_rate, step);
  std::vector<std::span<float>> own(slots.size());
  for_each_rate(rated_, {first, first + weights.size()}, step, [&](element_range r, float factor) {
    std::size_t const at = r.first - first;
    for (std::size_t i = 0; i < slots.size(); ++i) own[i] = slots[i].subspan(at, r.size());
    rule_.apply_at(r.first, weights.subspan(at, r.size()), gradients.subspan(at, r.size()), own,
                   factor * learning_rate, step);
  });
}

}  // namespace edl
