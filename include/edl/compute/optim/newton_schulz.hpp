// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>

namespace edl {

using newton_schulz_polynomial = std::array<double, 3>;
inline constexpr newton_schulz_polynomial jordan_polynomial{3.4445, -4.7750, 2.0315};

/// Makes a matrix, `rows` × `columns` by rows, about orthogonal: its singular vectors stay, and its singular
/// values come near 1. x ← x / (‖x‖ + 10⁻⁷), then `steps` times x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x with the
/// polynomial {a, b, c}. (Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.) After
/// five steps of `jordan_polynomial` those that were at least a hundredth of the norm are between 0.68
/// and 1.14. They do not converge to 1, which is the price of few steps. Products are in T, summed in an
/// order that follows the extents alone, whatever the machine. Thread safety: distinct matrices: safe. The
/// calling thread keeps the memory that it takes.
template <std::floating_point T>
void orthogonalise(std::span<T> x, std::size_t rows, std::size_t columns, int steps,
                   newton_schulz_polynomial const& polynomial = jordan_polynomial);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/newton_schulz.ipp"
#endif
