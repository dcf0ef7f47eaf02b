// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Products of bfloat16 matrices by a processor's matrix unit, which multiplies tiles of 1 KiB. A left tile
/// has 16 rows of 32 numbers. A right tile has 32 rows of 16 numbers, each two rows side by side, number by
/// number. The product of two is 16 x 16 sums in float32.
namespace edl::detail::tiled {

using half = std::uint16_t;  // a bfloat16
constexpr std::size_t rows = 16, depth = 32, tile = rows * depth;

/// Evenly spaced tiles of both factors.
struct run_of_tiles {
  half const *left, *right;
  std::size_t steps;
};

/// Up to 2 × 2 tiles of sums. Distances of the factors' tiles are in numbers: from one step to the next, and
/// from a step's first tile to its second.
struct tile_product {
  std::span<run_of_tiles const> runs;
  std::size_t left_step, left_second, right_step, right_second;
  float* sums;
  std::size_t stride;  // of a row of sums
  bool add;            // to what is there
};

}  // namespace edl::detail::tiled
