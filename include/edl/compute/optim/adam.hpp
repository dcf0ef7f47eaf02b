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

/// Adam: m ← β₁·m + (1 − β₁)·g, v ← β₂·v + (1 − β₂)·g², w ← w − rate·√(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε)
/// with t from 1. It is the form at the end of section 2, where ε is outside of the root and not corrected
/// (Kingma and Ba, "Adam", ICLR 2015). `amsgrad` divides by the largest v so far (Reddi, Kale and Kumar, ICLR
/// 2018). `weight_decay` d is decoupled: w shrinks by rate·d·w besides (Loshchilov and Hutter, ICLR 2019).
struct adam {
  float learning_rate = 0.001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;
  bool amsgrad = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "m", "v", and "v_max" with `amsgrad`.
  constexpr slot_list slots() const {
    return amsgrad ? slot_list{slot{"m"}, slot{"v"}, slot{"v_max"}} : slot_list{slot{"m"}, slot{"v"}};
  }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_share(beta_1) && is_share(beta_2) &&
           is_amount(epsilon);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/adam.ipp"
#endif
