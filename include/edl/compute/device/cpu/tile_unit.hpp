// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/tile_product.hpp"

namespace edl::detail::tiled {

/// Whether the processor has a matrix unit for bfloat16 (AMX), and the system lets this process use it. The
/// first call requests permission.
inline bool has_unit() {
  static bool const has = [] {
    // Clang 16 does not know the names of these for `__builtin_cpu_supports`.
    constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24, both = amx_bf16 | amx_tile;
    unsigned a = 0, b = 0, c = 0, d = 0;
    bool const there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & both) == both;
    constexpr long ask = 0x1023, tiles = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return there && has_bfloat16_instructions() && syscall(SYS_arch_prctl, ask, tiles) == 0;
  }();
  return has;
}

/// That unit, with the vector code that fills its tiles. Only processors that have it may call these
/// functions.
struct unit {
  /// Configures the calling thread's tiles for as long as it lives.
  class session {
   public:
    [[gnu::target("amx-tile")]] session() {
      // Static, because GCC 12 does not know that the instruction reads all of it.
      alignas(64) static constexpr struct {
        std::uint8_t palette = 1, start = 0, unused[14]{};
        std::uint16_t bytes_of_row[16]{64, 64, 64, 64, 64, 64, 64, 64};
        std::uint8_t rows[16]{16, 16, 16, 16, 16, 16, 16, 16};
      } shape;
      _tile_loadconfig(&shape);
    }
    [[gnu::target("amx-tile")]] ~session() { _tile_release(); }
    session(session const&) = delete;
  };

  /// Left x Right tiles of sums.
  template <int Left, int Right>
  [[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] static void multiply(tile_product const& p) {
    constexpr bool below = Left > 1, beside = Right > 1;
    constexpr std::size_t line = 64;
    std::size_t const stride = p.stride * sizeof(float);
    float* const lower = p.sums + 16 * p.stride;
    asm volatile("" ::: "memory");  // GCC 12 does not know that these instructions read memory
    if (p.add) {
      _tile_loadd(0, p.sums, stride);
      if constexpr (beside) _tile_loadd(1, p.sums + 16, stride);
      if constexpr (below) _tile_loadd(2, lower, stride);
      if constexpr (below && beside) _tile_loadd(3, lower + 16, stride);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (run_of_tiles r : p.runs)
      for (; r.steps > 0; --r.steps, r.left += p.left_step, r.right += p.right_step) {
        _tile_loadd(4, r.left, line);
        _tile_loadd(6, r.right, line);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (beside) {
          _tile_loadd(7, r.right + p.right_second, line);
          _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (below) {
          _tile_loadd(5, r.left + p.left_second, line);
          _tile_dpbf16ps(2, 5, 6);
        }
        if constexpr (below && beside) _tile_dpbf16ps(3, 5, 7);
      }
    _tile_stored(0, p.sums, stride);
    if constexpr (beside) _tile_stored(1, p.sums + 16, stride);
    if constexpr (below) _tile_stored(2, lower, stride);
    if constexpr (below && beside) _tile_stored(3, lower + 16, stride);
  }

  /// 32 x 32 numbers, in rows `stride` apart, as two right tiles: of the left columns and, `second` numbers
  /// further, of the right ones.
  [[gnu::target("avx512f,avx512bw")]] static void pair_rows(half const* from, std::size_t stride, half* to,
                                                            std::size_t second) {
    __m512i const left = _mm512_set_epi32(0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a,
                                          0x290009, 0x280008, 0x270007, 0x260006, 0x250005, 0x240004,
                                          0x230003, 0x220002, 0x210001, 0x200000),
                  right = _mm512_add_epi16(left, _mm512_set1_epi16(16));
    for (std::size_t q = 0; q < rows; ++q, from += 2 * stride, to += depth) {
      __m512i const a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + stride);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, left, b));
      _mm512_storeu_si512(to + second, _mm512_permutex2var_epi16(a, right, b));
    }
  }

  /// 16 x 16 pairs of numbers, in rows `stride` numbers apart, with rows for columns.
  [[gnu::target("avx512f")]] static void turn_pairs(half const* from, std::size_t stride, half* to) {
    __m512i const lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i x[rows];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < rows; ++c) x[c] = _mm512_loadu_si512(from + c * stride);
#pragma GCC unroll 4
    for (unsigned d = 8; d > 0; d /= 2) {  // Eklundh's steps
      auto const upper = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(int(d)));
      __m512i const order = _mm512_xor_si512(lanes, _mm512_set1_epi32(int(d)));
#pragma GCC unroll 16
      for (unsigned c = 0; c < rows; ++c) {
        if (c & d) continue;
        __m512i const a = x[c], b = x[c + d];
        x[c] = _mm512_mask_permutexvar_epi32(a, upper, order, b);
        x[c + d] = _mm512_mask_permutexvar_epi32(b, __mmask16(~upper), order, a);
      }
    }
#pragma GCC unroll 16
    for (std::size_t c = 0; c < rows; ++c) _mm512_storeu_si512(to + c * depth, x[c]);
  }

  /// y = sums + bias, where there is one, and with `relu` no less than 0, rounded. These are 16 or 32 columns
  /// of some rows, which are `stride` apart.
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void finish(
      float const* sums, std::size_t of_sums, std::size_t count, std::size_t columns, float const* bias,
      bool relu, half* y, std::size_t stride) {
    auto const wide = __mmask16(columns > 16 ? 0xffff : 0);
    __m512 const a = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps(),
                 b = bias ? _mm512_maskz_loadu_ps(wide, bias + 16) : _mm512_setzero_ps(),
                 least = _mm512_set1_ps(relu ? 0.0f : -__builtin_inff());
    for (; count > 0; --count, sums += of_sums, y += stride) {
      // A maximum with a NaN is its second factor.
      __m512 const low = _mm512_maskz_max_ps(__mmask16(-1), least, _mm512_loadu_ps(sums) + a),
                   high =
                       _mm512_maskz_max_ps(__mmask16(-1), least, _mm512_maskz_loadu_ps(wide, sums + 16) + b);
      auto const all = __mmask32(wide ? ~0u : 0xffff);
      _mm512_mask_storeu_epi16(y, all, __m512i(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
};

}  // namespace edl::detail::tiled

#endif
