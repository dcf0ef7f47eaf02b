// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

/// Loops over bfloat16 numbers in memory. Only processors that have these instructions
/// (has_bfloat16_instructions) may call them.
namespace edl::detail {

/// 16 numbers as floats. Masked, because GCC 12 warns of what the plain instructions leave undefined.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16"), gnu::always_inline]] inline __m512 widened_16(
    std::uint16_t const* x) {
  constexpr __mmask16 all = 0xffff;
  __m256i const numbers = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, numbers), 16));
}

/// 32 numbers, rounded.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16"), gnu::always_inline]] inline void store_32(
    std::uint16_t* y, __m512 low, __m512 high) {
  _mm512_storeu_si512(y, __m512i(_mm512_cvtne2ps_pbh(high, low)));
}

/// y = a + b, no less than `least`, of 32 · n numbers. It is 0 where `mask` is there and not greater than 0.
/// y may be a or b.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void add_blocks(
    std::size_t n, std::uint16_t const* a, std::uint16_t const* b, std::uint16_t const* mask, float least,
    std::uint16_t* y) {
  __m512 const floor = _mm512_set1_ps(least), none = _mm512_setzero_ps();
  for (; n > 0; --n, a += 32, b += 32, y += 32) {
    __m512 sum[2];
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k)  // a maximum with a NaN is its second factor
      sum[k] = _mm512_maskz_max_ps(0xffff, floor, widened_16(a + 16 * k) + widened_16(b + 16 * k));
    if (mask) {
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k)
        sum[k] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(widened_16(mask + 16 * k), none, _CMP_GT_OQ), sum[k]);
      mask += 32;
    }
    store_32(y, sum[0], sum[1]);
  }
}

}  // namespace edl::detail

#endif
