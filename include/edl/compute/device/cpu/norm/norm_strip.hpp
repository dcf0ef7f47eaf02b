// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace edl::detail {

/// What a channel's gradients need, one array of `channels` after the other.
template <class T>
struct norm_arrays {
  T const *scale, *offset, *mean;  // z = x · scale + offset
  T const *of_dy, *of_x, *rest;    // dx = dz · of_dy + x · of_x + rest
};

}  // namespace edl::detail

/// Batch normalisation of bfloat16 samples, 32 channels at a time (narrow_norm.hpp).
namespace edl::detail::narrow_norm {

using half = std::uint16_t;              // a bfloat16
constexpr std::size_t strip_width = 32;  // channels, of 64 bytes
constexpr std::size_t most_rows = 64;    // that are summed before they are added to what there is

/// Results of 32 channels, one after the other, and the windows that they come out of. Distances are in
/// numbers.
struct strip {
  std::size_t count;
  std::size_t in, out;                  // from a window's first place to the next one's, and between results
  std::span<std::size_t const> places;  // of a window, from its first
};

}  // namespace edl::detail::narrow_norm
