// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl {

/// Functions of one element each. Backward functions take the output y, except for gelu, silu and softplus,
/// which take x: an output of gelu or silu belongs to two inputs, and one of softplus may be rounded to 0.
enum class elementwise : std::uint8_t {
  relu,        ///< max(x, 0); a NaN propagates
  leaky_relu,  ///< x where x > 0, parameter · x elsewhere, with a parameter ≥ 0
  sigmoid,     ///< 1 / (1 + exp(−x))
  tanh,
  gelu,  ///< x · Φ(x), Φ being the standard normal distribution (Hendrycks and Gimpel, "Gaussian error linear
         ///< units", 2016)
  scale,    ///< parameter · x
  silu,     ///< x / (1 + exp(−x))
  elu,      ///< x where x > 0, parameter · (exp(x) − 1) elsewhere, with a parameter ≥ 0
  softplus  ///< log(1 + exp(x))
};

/// Whether the backward function takes x instead of y.
constexpr bool slope_of_x(elementwise f) {
  return f == elementwise::gelu || f == elementwise::silu || f == elementwise::softplus;
}

}  // namespace edl
