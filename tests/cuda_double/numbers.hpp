// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace edl::cuda_double {

/// The nearest number with 11 bits of precision, as tensor cores read float32 (tf32).
inline float to_tf32(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~std::uint32_t(0x1fff));
}

inline void product_inputs(std::vector<float>& all) {
  for (float& x : all) x = to_tf32(x);
}

}  // namespace edl::cuda_double
