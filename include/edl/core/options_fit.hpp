// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

namespace edl {

/// Whether the options of an optimiser, a schedule or an augmentation are in range. A part whose options may
/// be out of range has `options_fit()`. A model's constant that is out of range does not compile.
template <class Part>
constexpr bool options_fit(Part const& part) {
  if constexpr (requires {
                  { part.options_fit() } -> std::convertible_to<bool>;
                })
    return part.options_fit();
  else
    return true;
}

/// Finite, and not below 0.
constexpr bool is_amount(float x) { return x >= 0 && x - x == 0; }

/// In [0, 1).
constexpr bool is_share(float x) { return x >= 0 && x < 1; }

}  // namespace edl
