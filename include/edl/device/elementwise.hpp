// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl {

/// What is done to every element by itself. Backward functions take the output y, except for gelu, an output
/// of which has two inputs: it takes x.
enum class elementwise : std::uint8_t {
  relu,        ///< max(x, 0); a NaN stays
  leaky_relu,  ///< x where x > 0, parameter · x elsewhere, with a parameter ≥ 0
  sigmoid,     ///< 1 / (1 + exp(−x))
  tanh,
  gelu,  ///< x · Φ(x), Φ being the standard normal distribution (Hendrycks and Gimpel, "Gaussian error linear
         ///< units", 2016)
  scale  ///< parameter · x
};

}  // namespace edl
