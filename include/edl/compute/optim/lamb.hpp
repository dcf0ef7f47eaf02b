// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// LAMB: Adam's step u, as long as the variable w itself, for large minibatches. m ← β₁·m + (1 − β₁)·g,
/// v ← β₂·v + (1 − β₂)·g², u = m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε) + d·w. Then w ← w − rate·‖w‖ / ‖u‖·u,
/// with norms of the whole variable and t from 1. (You et al., "Large batch optimization for deep learning",
/// ICLR 2020, algorithm 2 with φ(z) = z.) The ratio is 1 where one of them is 0. `weight_decay` d is part of
/// u, as in the paper. Rows of tables have a ratio of 1.
struct lamb {
  float learning_rate = 0.001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-6f;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: d is 0 for biases
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "m", "v".
  constexpr slot_list slots() const { return {slot{"m"}, slot{"v"}}; }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_share(beta_1) && is_share(beta_2) &&
           is_amount(epsilon);
  }

  /// One step on a variable; see `whole_optimizer`. For float and double.
  template <std::floating_point T>
  void apply_whole(variable const& of, std::span<T> weights, view<T> gradients,
                   std::span<std::span<T> const> slots, T rate, std::uint64_t step) const;

  /// One step with a ratio of 1; see `optimizer`.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/lamb.ipp"
#endif
