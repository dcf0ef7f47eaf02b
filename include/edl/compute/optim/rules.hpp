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

/// Stochastic gradient descent. With momentum μ: v ← μ·v + g, then w ← w − rate·v, or w ← w − rate·(g + μ·v)
/// with `nesterov`. This form keeps v free of the rate (Sutskever et al., "On the importance of
/// initialization and momentum in deep learning", ICML 2013). `weight_decay` d is decoupled: w also shrinks
/// by rate·d·w.
struct sgd {
  float learning_rate = 0.01f;
  float momentum = 0;
  bool nesterov = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not decay
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

/// Adagrad: a ← a + g², w ← w − rate·g / (√a + ε) (Duchi, Hazan and Singer, "Adaptive subgradient methods",
/// JMLR 12, 2011), with the defaults of Keras. `weight_decay` d is decoupled: w also shrinks by rate·d·w.
struct adagrad {
  float learning_rate = 0.001f;
  float initial_accumulator = 0.1f;
  float epsilon = 1e-7f;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not decay
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

/// RMSprop: v ← ρ·v + (1 − ρ)·g², u = g / (√v + ε), w ← w − rate·u (Tieleman and Hinton, "Neural networks for
/// machine learning", lecture 6.5, 2012). `centered` takes the square of the mean gradient a, a ← ρ·a + (1 −
/// ρ)·g, from v (Graves, "Generating sequences with recurrent neural networks", 2013). With momentum μ: b ←
/// μ·b + u, w ← w − rate·b, as in PyTorch; ε is outside the root, as for the other optimisers. `weight_decay`
/// d is decoupled: w also shrinks by rate·d·w.
struct rmsprop {
  float learning_rate = 0.001f;
  float rho = 0.9f;
  float momentum = 0;
  float epsilon = 1e-7f;
  bool centered = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not decay
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  /// "v", "mean" if it is centered, and "momentum" if there is momentum.
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

/// Adam: m ← β₁·m + (1 − β₁)·g, v ← β₂·v + (1 − β₂)·g², w ← w − rate·√(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε)
/// with t from 1. It is the form at the end of section 2, with ε outside the root and not corrected (Kingma
/// and Ba, "Adam", ICLR 2015). `amsgrad` divides by the largest v so far (Reddi, Kale and Kumar, ICLR 2018).
/// `weight_decay` d is decoupled: w also shrinks by rate·d·w (Loshchilov and Hutter, ICLR 2019).
struct adam {
  float learning_rate = 0.001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;
  bool amsgrad = false;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not decay
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
  bool decay_biases = true;                      ///< false: biases do not decay
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

/// LAMB: Adam's step u, as long as the variable w itself, for large minibatches. m ← β₁·m + (1 − β₁)·g,
/// v ← β₂·v + (1 − β₂)·g², u = m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε) + d·w. Then w ← w − rate·‖w‖ / ‖u‖·u,
/// with norms of the whole variable and t from 1. (You et al., "Large batch optimization for deep learning",
/// ICLR 2020, algorithm 2 with φ(z) = z.) The ratio is 1 if one of them is 0. `weight_decay` d is part of u,
/// as in the paper. Rows of tables have a ratio of 1.
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

/// Lion: w ← w − rate·sign(β₁·m + (1 − β₁)·g), then m ← β₂·m + (1 − β₂)·g; the sign of 0 is 0. (Chen et al.,
/// "Symbolic discovery of optimization algorithms", NeurIPS 2023.) Every step is as large as the rate, so use
/// one 3 to 10 times smaller than Adam's, and a weight decay larger by the same factor. It stores half as
/// much as Adam. `weight_decay` d is decoupled: w also shrinks by rate·d·w.
struct lion {
  float learning_rate = 0.0001f;
  float beta_1 = 0.9f;
  float beta_2 = 0.99f;
  float weight_decay = 0;
  bool decay_biases = true;                      ///< false: biases do not decay
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

/// FTRL-Proximal, for sparse linear models: n ← n + g², z ← z + g − (√n − √n_before)/rate·w, then w ← 0 where
/// |z| ≤ l1, else w ← (sign(z)·l1 − z) / ((β + √n)/rate + 2·l2). (McMahan et al., "Ad click prediction: a
/// view from the trenches", KDD 2013, with the options and defaults of Keras.) `l1` makes weights exactly 0.
/// The first update draws a weight towards 0, whatever its initial value is: it is for linear models, not for
/// embeddings. The formula assumes one rate: a
/// schedule changes how much earlier gradients count. At a rate of 0 nothing changes.
struct ftrl {
  float learning_rate = 0.001f;
  float initial_accumulator = 0.1f;
  float l1 = 0;
  float l2 = 0;
  float beta = 0;

  /// "accumulator", n, and "linear", z.
  constexpr slot_list slots() const { return {slot{"accumulator", initial_accumulator}, slot{"linear"}}; }

  constexpr bool options_fit() const {
    return is_amount(learning_rate) && is_amount(initial_accumulator) && is_amount(l1) && is_amount(l2) &&
           is_amount(beta);
  }

  /// One step; see `optimizer`. For float and double.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/rules.ipp"
#endif
