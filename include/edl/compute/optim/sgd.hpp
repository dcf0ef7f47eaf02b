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

/// Stochastic gradient descent. With momentum μ: v ← μ·v + g, then w ← w − rate·v, or w ← w − rate·(g + μ·v)
/// with `nesterov`. This form keeps v free of the rate (Sutskever et al., "On the importance of
/// initialization and momentum in deep learning", ICML 2013). `weight_decay` d is decoupled: w shrinks by
/// rate·d·w besides.
struct sgd {
  float learning_rate = 0.01f;
  float momentum = 0;
  bool nesterov = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "momentum" where there is momentum.
  constexpr slot_list slots() const { return momentum != 0 ? slot_list{slot{"momentum"}} : slot_list{}; }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(weight_decay) && is_share(momentum);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/sgd.ipp"
#endif
