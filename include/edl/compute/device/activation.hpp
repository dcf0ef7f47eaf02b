// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// What an operation may apply to its result before it stores it. Only normalisations support `gelu` and
/// `silu`.
enum class activation { none, relu, gelu, silu };

/// Whether the function falls before it rises. Such a function does not map the greatest input to the
/// greatest output, and its slope cannot be read off its output.
constexpr bool curved(activation f) { return f == activation::gelu || f == activation::silu; }

}  // namespace edl
