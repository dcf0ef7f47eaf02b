// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/lanes.hpp"

namespace edl::detail {

/// y (n) += by[0] · at[0] (n) + … + by[3] · at[3], in this order. Brings `next` into the cache meanwhile.
inline void add_rows(std::size_t n, float const* const (&at)[4], float const (&by)[4],
                     float const* const (&next)[4], float* y) {
  using vector = lanes<float>::type;
  constexpr std::size_t width = lanes<float>::count, line = 2 * width;
  std::size_t j = 0;
  for (; j + line <= n; j += line) {
    vector a = load<vector>(y + j), b = load<vector>(y + j + width);
    for (int r = 0; r < 4; ++r) {
      __builtin_prefetch(next[r] + j);
      a += by[r] * load<vector>(at[r] + j);
      b += by[r] * load<vector>(at[r] + j + width);
    }
    store<vector>(y + j, a);
    store<vector>(y + j + width, b);
  }
  for (; j < n; ++j)
    for (int r = 0; r < 4; ++r) y[j] += by[r] * at[r][j];
}

/// y = x · b for one row x of k numbers, if at least a quarter of them are 0, as after a relu. It does not
/// read the rows of b (k × n) that meet a 0, because memory bandwidth limits such a product. `places` has
/// room for k numbers. False: not computed, because a library's product is as fast.
inline bool multiply_row_of_zeros(std::size_t n, std::size_t k, float const* x, matrix<float> b, float* y,
                                  std::uint32_t* places) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < k; ++i) {
    places[count] = std::uint32_t(i);
    count += x[i] != 0;  // a NaN counts as not 0
  }
  if (4 * count > 3 * k) return false;
  std::fill_n(y, n, 0.0f);
  float const *at[4], *next[4];
  float by[4];
  for (std::size_t i = 0; i < count; i += 4) {
    for (std::size_t r = 0; r < 4; ++r) {
      std::size_t const here = std::min(i + r, count - 1);
      at[r] = b.data + places[here] * b.stride;
      by[r] = i + r < count ? x[places[here]] : 0;
      next[r] = b.data + places[std::min(here + 4, count - 1)] * b.stride;
    }
    add_rows(n, at, by, next, y);
  }
  return true;
}

}  // namespace edl::detail
