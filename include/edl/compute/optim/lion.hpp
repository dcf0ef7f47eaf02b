// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Lion: w ← w − rate·sign(β₁·m + (1 − β₁)·g), then m ← β₂·m + (1 − β₂)·g; the sign of 0 is 0. (Chen et al.,
/// "Symbolic discovery of optimization algorithms", NeurIPS 2023.) Every step is as large as the rate, which
/// is 3 to 10 times smaller than Adam's, and the weight decay as much larger. It remembers half of what Adam
/// does. `weight_decay` d is decoupled: w shrinks by rate·d·w besides.
struct lion {
  float learning_rate = 0.0001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.99f;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "m".
  constexpr slot_list slots() const { return {slot{"m"}}; }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_share(beta_1) && is_share(beta_2);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/lion.ipp"
#endif
