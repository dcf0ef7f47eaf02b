// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// What an operation may do to its result before it is stored. `gelu` and `silu`: normalisations alone.
enum class activation { none, relu, gelu, silu };

/// Whether it falls before it rises. Then the greatest of its values is no value of the greatest, and its
/// slope has to be computed.
constexpr bool curved(activation f) { return f == activation::gelu || f == activation::silu; }

}  // namespace edl
