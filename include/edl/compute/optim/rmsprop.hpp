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

/// RMSprop: v ← ρ·v + (1 − ρ)·g², u = g / (√v + ε), w ← w − rate·u (Tieleman and Hinton, "Neural networks for
/// machine learning", lecture 6.5, 2012). `centered` takes the square of the mean gradient a, a ← ρ·a + (1 −
/// ρ)·g, from v (Graves, "Generating sequences with recurrent neural networks", 2013). With momentum μ: b ←
/// μ·b + u, w ← w − rate·b, as PyTorch has it; ε stands outside of the root, as for the other optimisers.
/// `weight_decay` d is decoupled: w shrinks by rate·d·w besides.
struct rmsprop {
  float learning_rate = 0.001f;
  float rho = 0.9f;
  float momentum = 0;
  float epsilon = 1e-7f;
  bool centered = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "v", "mean" where it is centered, and "momentum" where there is momentum.
  constexpr slot_list slots() const {
    slot_list all{slot{"v"}};
    if (centered) all.slots[all.count++] = slot{"mean"};
    if (momentum != 0) all.slots[all.count++] = slot{"momentum"};
    return all;
  }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_share(rho) && is_share(momentum) &&
           is_amount(epsilon);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/rmsprop.ipp"
#endif
