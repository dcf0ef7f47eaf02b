// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace edl {

/// Mixes a value into a key (the finaliser of SplitMix64): children of one key have unrelated streams.
constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value) {
  std::uint64_t z = key + 0x9E3779B97F4A7C15u * (value + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Counter-based random numbers, Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011). Element i of the stream (key, step) is a pure function of the three, so that every device,
/// thread count and restart draws the same.
struct random_stream {
  std::uint64_t key = 0, step = 0;

  using block_type = std::array<std::uint32_t, 4>;
  __extension__ using wide_type = unsigned __int128;

  /// The stream of one part of this stream's owner.
  constexpr random_stream child(std::uint64_t index) const { return {mix(key, index), step}; }

  /// Elements 4·index to 4·index + 3, uniform over 32 bits.
  constexpr block_type block(std::uint64_t index) const {
    block_type c{std::uint32_t(index), std::uint32_t(index >> 32), std::uint32_t(step),
                 std::uint32_t(step >> 32)};
    auto k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = std::uint64_t{0xD2511F53u} * c[0], p1 = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {std::uint32_t(p1 >> 32) ^ c[1] ^ k0, std::uint32_t(p1), std::uint32_t(p0 >> 32) ^ c[3] ^ k1,
           std::uint32_t(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }

  constexpr std::uint32_t bits(std::uint64_t element) const { return block(element / 4)[element % 4]; }

  /// In [0, 1), 24 bits of it.
  constexpr float uniform(std::uint64_t element) const { return float(bits(element) >> 8) * 0x1p-24f; }

  /// In [0, n), for n > 0; the bias is below n / 2^64.
  constexpr std::uint64_t below(std::uint64_t n, std::uint64_t element) const {
    block_type const b = block(element);
    std::uint64_t const wide = std::uint64_t{b[0]} << 32 | b[1];
    return std::uint64_t((static_cast<wide_type>(wide) * n) >> 64);
  }

  /// Standard normal (Box and Muller, 1958): one pair of uniforms gives a pair of elements.
  double normal(std::uint64_t element) const {
    block_type const b = block(element / 2);
    double const u = (double(b[0]) + 1) * 0x1p-32, v = double(b[1]) * 0x1p-32;
    double const radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    return radius * (element % 2 ? std::sin(angle) : std::cos(angle));
  }
};

/// Writes a permutation of [0, n), drawn from the stream, into `order` (any indexable sequence): Fisher and
/// Yates.
template <class Sequence>
void shuffle(Sequence& order, random_stream const& random) {
  for (std::uint64_t i = order.size(); i > 1; --i) {
    auto const j = random.below(i, i);
    auto const last = order[i - 1];
    order[i - 1] = order[j];
    order[j] = last;
  }
}

}  // namespace edl
