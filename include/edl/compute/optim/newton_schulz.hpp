// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

namespace edl {

/// Makes a matrix, `rows` × `columns` by rows, about orthogonal: its singular vectors stay, and its singular
/// values come near 1. x ← x / (‖x‖ + 10⁻⁷), then `steps` times x ← a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x with a =
/// 3.4445, b = −4.7750 and c = 2.0315. (Jordan, "Muon: An optimizer for hidden layers in neural networks",
/// 2024.) After five steps those that were at least a hundredth of the norm are between 0.68 and 1.14. They
/// do not converge to 1, which is the price of few steps. Products are in T, summed in an order that follows
/// the extents alone, whatever the machine. Thread safety: distinct matrices: safe. The calling thread keeps
/// the memory that it takes.
template <std::floating_point T>
void orthogonalise(std::span<T> x, std::size_t rows, std::size_t columns, int steps);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/newton_schulz.ipp"
#endif
