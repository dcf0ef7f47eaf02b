// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/optim/adam.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019), with the defaults of
/// Keras. `adam` decouples its weight decay already: this is `adam{.weight_decay = 0.004f}` by another name,
/// bit by bit.
struct adamw {
  float learning_rate = 0.001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;
  bool amsgrad = false;
  float weight_decay = 0.004f;
  bool decay_biases = true;                      ///< false: biases do not shrink
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  constexpr adam as_adam() const {
    return {.learning_rate = learning_rate,
            .beta_1 = beta_1,
            .beta_2 = beta_2,
            .epsilon = epsilon,
            .amsgrad = amsgrad,
            .weight_decay = weight_decay,
            .decay_biases = decay_biases,
            .exclude_from_weight_decay = exclude_from_weight_decay};
  }

  /// Those of `adam`.
  constexpr slot_list slots() const { return as_adam().slots(); }

  constexpr bool options_fit() const { return as_adam().options_fit(); }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const {
    as_adam().apply(weights, gradients, slots, rate, step);
  }
};

}  // namespace edl
