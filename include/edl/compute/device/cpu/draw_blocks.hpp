// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "edl/core/random.hpp"

namespace edl::detail {

/// Blocks number `first` and following of a stream, element after element. They are `random_stream::block`,
/// with the blocks side by side in the rounds, so that the compiler makes vectors of them.
template <std::size_t N>
void draw_side_by_side(random_stream const& random, std::uint64_t first, std::array<std::uint32_t, N>& to) {
  constexpr std::size_t blocks = N / 4;
  std::array<std::uint32_t, blocks> a, b, c, d;
  for (std::size_t i = 0; i < blocks; ++i) {
    a[i] = std::uint32_t(first + i);
    b[i] = std::uint32_t((first + i) >> 32);
    c[i] = std::uint32_t(random.step);
    d[i] = std::uint32_t(random.step >> 32);
  }
  auto k0 = std::uint32_t(random.key), k1 = std::uint32_t(random.key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < blocks; ++i) {
      std::uint64_t const p0 = std::uint64_t{0xD2511F53u} * a[i], p1 = std::uint64_t{0xCD9E8D57u} * c[i];
      a[i] = std::uint32_t(p1 >> 32) ^ b[i] ^ k0;
      b[i] = std::uint32_t(p1);
      c[i] = std::uint32_t(p0 >> 32) ^ d[i] ^ k1;
      d[i] = std::uint32_t(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (std::size_t i = 0; i < blocks; ++i) {
    to[4 * i] = a[i];
    to[4 * i + 1] = b[i];
    to[4 * i + 2] = c[i];
    to[4 * i + 3] = d[i];
  }
}

/// The same, as AVX-512 does it 16 blocks at a time where the processor has it, and false where it has not,
/// or `blocks` is no multiple of 16.
bool draw_by_vectors(random_stream const& random, std::uint64_t first, std::size_t blocks, std::uint32_t* to);

/// The same, however it is done fastest here.
template <std::size_t N>
void draw_blocks(random_stream const& random, std::uint64_t first, std::array<std::uint32_t, N>& to) {
  if (!draw_by_vectors(random, first, N / 4, to.data())) draw_side_by_side(random, first, to);
}

/// The least of an element's upper 24 bits whose `random_stream::uniform` is not below `rate`.
inline std::uint32_t least_kept(double rate) { return std::uint32_t(std::ceil(rate * 0x1p24)); }

/// Factors that dropout multiplies elements of a stream by: 0 below `rate`, 1 / (1 − rate) elsewhere. It
/// draws as many at a time as makes vectors, and keeps them for the elements that come next.
template <class T>
class drawn_factors {
 public:
  drawn_factors(random_stream const& random, float rate)
      : random_(random), least_(least_kept(double(rate))), scale_(T(1) / (T(1) - T(rate))) {}

  /// Factors of the elements from `first` on.
  void operator()(std::uint64_t first, std::size_t n, T* to) {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t const element = first + i, chunk = element / drawn_.size();
      if (chunk != chunk_) draw_blocks(random_, chunk * (drawn_.size() / 4), drawn_), chunk_ = chunk;
      to[i] = (drawn_[element % drawn_.size()] >> 8) >= least_ ? scale_ : T(0);
    }
  }

 private:
  random_stream random_;
  std::uint32_t least_;
  T scale_;
  std::uint64_t chunk_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 256> drawn_{};
};

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/draw_blocks.ipp"
#endif
