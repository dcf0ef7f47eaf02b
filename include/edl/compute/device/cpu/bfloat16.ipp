// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/inline.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace edl::detail {

#ifdef __x86_64__
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) inline void round_by_instruction(
    std::size_t n, float const* x, std::uint16_t* y) {
  constexpr std::size_t lanes = 16;
  for (std::size_t i = 0; i < n; i += lanes) {
    __mmask16 const some = n - i < lanes ? __mmask16((1u << (n - i)) - 1) : __mmask16(0xffff);
    _mm256_mask_storeu_epi16(y + i, some, __m256i(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + i))));
  }
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) inline void widen_by_instruction(std::size_t n,
                                                                                      std::uint16_t const* x,
                                                                                      float* y) {
  // Samples are widened in parts. The next part is prefetched during the computation with this one.
  constexpr std::size_t lanes = 16, ahead = 1024, line = 32;
  for (std::size_t i = 0; i < n; i += lanes) {
    if (i % line == 0) __builtin_prefetch(x + i + ahead);
    __mmask16 const some = n - i < lanes ? __mmask16((1u << (n - i)) - 1) : __mmask16(0xffff);
    // Masked, because GCC 12 warns of undefined operands in the plain intrinsics.
    __m512i const wide = _mm512_maskz_cvtepu16_epi32(some, _mm256_maskz_loadu_epi16(some, x + i));
    _mm512_mask_storeu_ps(y + i, some, _mm512_castsi512_ps(_mm512_maskz_slli_epi32(some, wide, 16)));
  }
}
#endif

EDL_INLINE void round_here(std::size_t n, float const* x, std::uint16_t* y) {
#ifdef __x86_64__
  if (has_bfloat16_instructions()) return round_by_instruction(n, x, y);
#endif
  for (std::size_t i = 0; i < n; ++i) y[i] = to_bfloat16(x[i]);
}

EDL_INLINE void round_here(std::size_t n, float const* x, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = from_bfloat16(to_bfloat16(x[i]));
}

EDL_INLINE void widen_here(std::size_t n, std::uint16_t const* x, float* y) {
#ifdef __x86_64__
  if (has_bfloat16_instructions()) return widen_by_instruction(n, x, y);
#endif
  using wide = std::uint32_t __attribute__((vector_size(32), aligned(4), may_alias));
  using narrow = std::uint16_t __attribute__((vector_size(16), aligned(2), may_alias));
  constexpr std::size_t lanes = 8;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, __builtin_convertvector(load<narrow>(x + i), wide) << 16);
  for (; i < n; ++i) y[i] = from_bfloat16(x[i]);
}

}  // namespace edl::detail
