// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "edl/compute/device/cpu/draw_blocks.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace edl::detail {

#ifdef __x86_64__
[[gnu::target("avx512f")]] EDL_INLINE void draw_by_avx512(random_stream const& random, std::uint64_t first,
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

EDL_INLINE bool draw_by_vectors([[maybe_unused]] random_stream const& random,
                                [[maybe_unused]] std::uint64_t first, [[maybe_unused]] std::size_t blocks,
                                [[maybe_unused]] std::uint32_t* to) {
#ifdef __x86_64__
  if (blocks % 16 == 0 && __builtin_cpu_supports("avx512f")) {
    draw_by_avx512(random, first, blocks, to);
    return true;
  }
#endif
  return false;
}

}  // namespace edl::detail
