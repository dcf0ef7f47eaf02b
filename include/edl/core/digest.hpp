// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "edl/core/span.hpp"

namespace edl {

/// A number for a block of bytes. Blocks of equal size that differ only within eight bytes always have
/// different numbers, so a flipped bit is always detected. Other different blocks collide by chance only
/// (2^-64). `seed`: the number of the preceding block. The lanes are those of xxHash64; machines of one byte
/// order compute equal numbers.
inline std::uint64_t digest(bytes of, std::uint64_t seed = 0) {
  constexpr std::uint64_t p1 = 0x9E3779B185EBCA87u, p2 = 0xC2B2AE3D27D4EB4Fu;
  std::array<std::uint64_t, 4> lanes{seed + p1 + p2, seed + p2, seed, seed - p1};
  auto const take = [&](std::uint64_t& lane, std::byte const* at, std::size_t n) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, n);
    lane = std::rotl(lane + word * p2, 31) * p1;
  };
  std::size_t at = 0;
  for (; at + 32 <= of.size(); at += 32)
    for (std::size_t i = 0; i < 4; ++i) take(lanes[i], of.data() + at + 8 * i, 8);
  for (std::size_t i = 0; at < of.size(); at += 8, ++i)
    take(lanes[i], of.data() + at, std::min<std::size_t>(8, of.size() - at));
  std::uint64_t all = of.size() * p1;
  for (std::uint64_t const lane : lanes) all = std::rotl(all ^ lane, 27) * p1 + p2;
  return all;
}

/// The same of numbers.
template <class T>
std::uint64_t digest(view<T> of, std::uint64_t seed = 0) {
  return digest(std::as_bytes(of), seed);
}

}  // namespace edl
