// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/geometry.hpp"

/// Samples as an operation with a narrow side has them: bfloat16 numbers, two in a float.
inline std::vector<float> as_narrow(std::vector<float> const& x, bool narrow = true) {
  if (!narrow) return x;
  std::vector<float> y(edl::scalars_of(x.size(), true));
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto const half = edl::to_bfloat16(x[i]);
    std::memcpy(reinterpret_cast<char*>(y.data()) + i * sizeof half, &half, sizeof half);
  }
  return y;
}

/// And back: `n` numbers.
inline std::vector<float> as_wide(std::vector<float> const& x, std::size_t n, bool narrow = true) {
  if (!narrow) return x;
  std::vector<float> y(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, reinterpret_cast<char const*>(x.data()) + i * sizeof half, sizeof half);
    y[i] = edl::from_bfloat16(half);
  }
  return y;
}
