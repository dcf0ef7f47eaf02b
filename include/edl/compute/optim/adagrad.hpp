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

/// Adagrad: a ← a + g², w ← w − rate·g / (√a + ε) (Duchi, Hazan and Singer, "Adaptive subgradient methods",
/// JMLR 12, 2011), with the defaults of Keras. `weight_decay` d is decoupled: w shrinks by rate·d·w besides.
struct adagrad {
  float learning_rate = 0.001f;
  float initial_accumulator = 0.1f;
  float epsilon = 1e-7f;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "accumulator".
  constexpr slot_list slots() const { return {slot{"accumulator", initial_accumulator}}; }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_amount(initial_accumulator) &&
           is_amount(epsilon);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/adagrad.ipp"
#endif
