// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/span.hpp"

namespace edl {

using newton_schulz_polynomial = std::array<double, 3>;
inline constexpr newton_schulz_polynomial jordan_polynomial{3.4445, -4.7750, 2.0315};

/// Makes a matrix, `rows` × `columns` by rows, approximately orthogonal: its singular vectors stay, and its
/// singular values approach 1. x ← x / (‖x‖ + 10⁻⁷), then `steps` times x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x
/// with the polynomial {a, b, c}. (Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.)
/// After five steps of `jordan_polynomial` those of at least a hundredth of the norm are between 0.68 and
/// 1.14. They do not converge to 1, which is the price of few steps. Products are in T, and the order of sums
/// depends only on the extents, not on the machine. Thread safety: distinct matrices: safe. The calling
/// thread keeps the allocated memory.
template <std::floating_point T>
void orthogonalise(std::span<T> x, std::size_t rows, std::size_t columns, int steps,
                   newton_schulz_polynomial const& polynomial = jordan_polynomial);

/// A variable as a matrix: its last dimension, by all those before it.
struct matrix_extents {
  std::size_t rows = 0, columns = 0;

  friend bool operator==(matrix_extents const&, matrix_extents const&) = default;
};

/// Some steps of a job, numbered from 1. The interval between them is `every` + ⌊growth · step / steps⌋: it
/// grows by 1, `growth` times, in equal parts of `steps`. The first is at least number `every`. None with
/// `every` = 0.
struct some_steps {
  std::uint64_t every = 0, growth = 0, steps = 1;

  constexpr bool options_fit() const { return steps > 0 && growth <= 1'000; }
  constexpr bool contain(std::uint64_t step) const {
    constexpr auto never = std::numeric_limits<std::uint64_t>::max();
    auto const begin = [&](std::uint64_t k) { return growth == 0 ? 0 : (k * steps + growth - 1) / growth; };
    std::uint64_t last = 0;
    for (std::uint64_t k = 0; every > 0; ++k) {
      std::uint64_t const gap = every + k, end = k == growth ? never : begin(k + 1),
                          first = std::max(last + gap, begin(k));
      if (step < end) return step >= first && (step - first) % gap == 0;
      if (first < end) last = first + (end - 1 - first) / gap * gap;
    }
    return false;
  }
};

/// Muon: the momentum of a matrix, made orthogonal (Jordan, "Muon: An optimizer for hidden layers in neural
/// networks", 2024). m ← μ·m + (1 − μ)·g, u = (1 − μ)·g + μ·m with `nesterov`, or m, O = `orthogonalise`(u),
/// w ← w − rate·0.2·√max(rows, columns)·O. The factor makes a step as large as AdamW's, so one rate suits
/// both. (Liu et al., "Muon is scalable for LLM training", 2025, section 2.2.) `weight_decay` d is decoupled:
/// w also shrinks by rate·d·w.
///
/// The kernel of a convolution is the matrix (height · width · channels) × filters. AdamW trains everything
/// that is not a matrix of at least two rows and two columns: biases, gammas and betas, rows of tables. It
/// also trains "embeddings" and the "rows" of positions, of which a minibatch uses only some, and variables
/// that `adamw_for` names. That is for last layers, which the paper trains with AdamW. With `sgd_for_rest`,
/// SGD with Nesterov momentum `beta_1` trains all these.
struct muon {
  float learning_rate = 0.001f;
  float momentum = 0.95f;
  bool nesterov = true;
  int newton_schulz_steps = 5;
  newton_schulz_polynomial polynomial = jordan_polynomial;  ///< of `orthogonalise`
  bool match_adamw = true;                                  ///< false: a step is rate·O
  /// Before these steps a matrix is scaled to √min(rows, columns), the norm of an orthogonal one.
  some_steps reset_norms{};
  std::string_view adamw_for{};  ///< names or patterns of matrices, as in --freeze, separated by ','
  bool sgd_for_rest = false;
  float beta_1 = 0.9f;  ///< of AdamW, as the following
  float beta_2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0;                        ///< of both
  bool decay_biases = true;                      ///< false: biases do not decay
  std::string_view exclude_from_weight_decay{};  ///< `excluded_from_decay`

  constexpr adam as_adam() const {
    return {.learning_rate = learning_rate,
            .beta_1 = beta_1,
            .beta_2 = beta_2,
            .epsilon = epsilon,
            .weight_decay = weight_decay};
  }

  constexpr sgd as_sgd() const {
    return {
        .learning_rate = learning_rate, .momentum = beta_1, .nesterov = true, .weight_decay = weight_decay};
  }

  /// "m", "v" as in Adam; for a matrix, m is the momentum, and v stays 0. With `sgd_for_rest`, "momentum".
  constexpr slot_list slots() const { return sgd_for_rest ? slot_list{slot{"momentum"}} : as_adam().slots(); }

  constexpr bool options_fit() const {
    return as_adam().options_fit() && is_share(momentum) && newton_schulz_steps >= 1 &&
           newton_schulz_steps <= 100 && reset_norms.options_fit();
  }

  /// The factor of the rate for a matrix.
  double step_size(matrix_extents of) const {
    return match_adamw ? 0.2 * std::sqrt(double(std::max(of.rows, of.columns))) : 1;
  }
  /// The norm to which a matrix is scaled before this step, from 0; 0: it is not scaled.
  double norm_before(matrix_extents of, std::uint64_t step) const {
    return reset_norms.contain(step + 1) ? std::sqrt(double(std::min(of.rows, of.columns))) : 0;
  }

  /// The variable as a matrix; empty: AdamW trains it.
  std::optional<matrix_extents> matrix_of(variable const& v) const;

  /// Throws error if a pattern of `adamw_for` matches no trained variable.
  void check(parameter_layout const& layout) const;

  /// One step on a variable; see `whole_optimizer`. For float and double.
  template <std::floating_point T>
  void apply_whole(variable const& of, std::span<T> weights, view<T> gradients,
                   std::span<std::span<T> const> slots, T rate, std::uint64_t step) const;

  /// A step of AdamW, or of SGD; see `optimizer`.
  template <std::floating_point T>
  void apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
             std::uint64_t step) const {
    if (sgd_for_rest)
      as_sgd().apply(weights, gradients, slots, rate, step);
    else
      as_adam().apply(weights, gradients, slots, rate, step);
  }
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/muon.ipp"
#endif
