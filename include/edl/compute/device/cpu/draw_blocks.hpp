// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "edl/core/random.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

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

#ifdef __x86_64__
/// The same for 16 blocks at a time. Only processors with AVX-512 may call it.
[[gnu::target("avx512f")]] inline void draw_by_vectors(random_stream const& random, std::uint64_t first,
                                                       std::size_t blocks, std::uint32_t* to) {
  constexpr std::size_t lanes = 16;
  constexpr __mmask16 odd = 0xaaaa, all = 0xffff;
  __m512i const m0 = _mm512_set1_epi32(int(0xD2511F53u)), m1 = _mm512_set1_epi32(int(0xCD9E8D57u));
  for (std::size_t v = 0; v < blocks; v += lanes, to += 4 * lanes) {
    alignas(64) std::uint32_t low[lanes], high[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
      low[i] = std::uint32_t(first + v + i);
      high[i] = std::uint32_t((first + v + i) >> 32);
    }
    __m512i a = _mm512_load_si512(low), b = _mm512_load_si512(high),
            c = _mm512_set1_epi32(int(std::uint32_t(random.step))),
            d = _mm512_set1_epi32(int(std::uint32_t(random.step >> 32)));
    auto k0 = std::uint32_t(random.key), k1 = std::uint32_t(random.key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      // Products of even lanes, and of odd ones.
      __m512i const e0 = _mm512_maskz_mul_epu32(0xff, a, m0), e1 = _mm512_maskz_mul_epu32(0xff, c, m1),
                    o0 = _mm512_maskz_mul_epu32(0xff, _mm512_maskz_srli_epi64(0xff, a, 32), m0),
                    o1 = _mm512_maskz_mul_epu32(0xff, _mm512_maskz_srli_epi64(0xff, c, 32), m1);
      a = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi64(0xff, e1, 32), odd, o1) ^ b ^
          _mm512_set1_epi32(int(k0));
      b = _mm512_mask_mov_epi32(e1, odd, _mm512_maskz_slli_epi64(0xff, o1, 32));
      c = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi64(0xff, e0, 32), odd, o0) ^ d ^
          _mm512_set1_epi32(int(k1));
      d = _mm512_mask_mov_epi32(e0, odd, _mm512_maskz_slli_epi64(0xff, o0, 32));
    }
    // Every fourth block, in parts of 128 bits.
    __m512i const ab = _mm512_maskz_unpacklo_epi32(all, a, b), AB = _mm512_maskz_unpackhi_epi32(all, a, b),
                  cd = _mm512_maskz_unpacklo_epi32(all, c, d), CD = _mm512_maskz_unpackhi_epi32(all, c, d),
                  of[4]{_mm512_maskz_unpacklo_epi64(0xff, ab, cd), _mm512_maskz_unpackhi_epi64(0xff, ab, cd),
                        _mm512_maskz_unpacklo_epi64(0xff, AB, CD), _mm512_maskz_unpackhi_epi64(0xff, AB, CD)};
    for (std::size_t i = 0; i < lanes; ++i)
      std::memcpy(to + 4 * i, reinterpret_cast<char const*>(&of[i % 4]) + i / 4 * 16, 16);
  }
}
#endif

/// The same, however it is done fastest here.
template <std::size_t N>
void draw_blocks(random_stream const& random, std::uint64_t first, std::array<std::uint32_t, N>& to) {
#ifdef __x86_64__
  if (N % 64 == 0 && __builtin_cpu_supports("avx512f"))
    return draw_by_vectors(random, first, N / 4, to.data());
#endif
  draw_side_by_side(random, first, to);
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
