// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__

#include <immintrin.h>

#include <cstddef>

#include "edl/compute/device/cpu/bfloat16_vectors.hpp"
#include "edl/compute/device/cpu/norm/norm_strip.hpp"

namespace edl::detail::narrow_norm {

/// The loops of a normalisation, by the processor's own bfloat16 instructions. Only processors that have them
/// (has_bfloat16_instructions) may call these functions.
struct unit {
  /// Adds `count` rows, which lie `stride` apart, to the mean and the sum of squared deviations of `before`
  /// others, by Chan's formula.
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void moments(half const* x,
                                                                              std::size_t stride,
                                                                              std::size_t count, float before,
                                                                              float* mean, float* squares) {
    float const n = float(count), weight = 1 / n, share = n / (before + n), both = before * share;
    __m512 const first[2]{widened_16(x), widened_16(x + 16)};
    __m512 sum[2]{}, square[2]{};
    for (std::size_t r = 0; r < count; ++r, x += stride) {
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        __m512 const off = widened_16(x + 16 * k) - first[k];
        sum[k] += off;
        square[k] = _mm512_fmadd_ps(off, off, square[k]);
      }
    }
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      __m512 const old = _mm512_loadu_ps(mean + 16 * k), off = first[k] + sum[k] * weight - old;
      _mm512_storeu_ps(squares + 16 * k, _mm512_loadu_ps(squares + 16 * k) +
                                             (square[k] - sum[k] * sum[k] * weight) + off * off * both);
      _mm512_storeu_ps(mean + 16 * k, old + off * share);
    }
  }

  /// y = the greatest of x · scale + offset in each window, or what `more` adds to it where that is not null,
  /// and with `relu` no less than 0. A NaN stays.
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void normalise(strip const& s, bool relu,
                                                                                half const* x,
                                                                                float const* scale,
                                                                                float const* offset,
                                                                                half const* more, half* y) {
    __m512 const a[2]{_mm512_loadu_ps(scale), _mm512_loadu_ps(scale + 16)},
        b[2]{_mm512_loadu_ps(offset), _mm512_loadu_ps(offset + 16)},
        least = _mm512_set1_ps(relu ? 0.0f : -__builtin_inff());
    for (std::size_t r = 0; r < s.count; ++r, x += s.in, y += s.out) {
      __m512 z[2];
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) z[k] = _mm512_fmadd_ps(widened_16(x + 16 * k), a[k], b[k]);
      if (more) {
        z[0] += widened_16(more), z[1] += widened_16(more + 16);
        more += s.out;
      }
      for (std::size_t p = 1; p < s.places.size(); ++p) {
        half const* const at = x + s.places[p];
#pragma GCC unroll 2
        for (std::size_t k = 0; k < 2; ++k) {
          __m512 const here = _mm512_fmadd_ps(widened_16(at + 16 * k), a[k], b[k]);
          auto const stays = __mmask16(_mm512_cmp_ps_mask(here, z[k], _CMP_LE_OQ) |
                                       _mm512_cmp_ps_mask(z[k], z[k], _CMP_UNORD_Q));
          z[k] = _mm512_mask_mov_ps(here, stays, z[k]);
        }
      }
      // A maximum with a NaN is its second factor.
      store_32(y, _mm512_maskz_max_ps(all, least, z[0]), _mm512_maskz_max_ps(all, least, z[1]));
    }
  }

  /// Adds Σ dz and Σ dz · (x − mean). Of a window, x is the greatest.
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void sum_gradients(
      strip const& s, bool relu, half const* x, half const* dy, norm_arrays<float> const& of, float* sum,
      float* product) {
    __mmask16 const passes = relu ? __mmask16(0) : all;
    __m512 scale[2], offset[2], mean[2], sums[2], products[2];
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      scale[k] = _mm512_loadu_ps(of.scale + 16 * k), offset[k] = _mm512_loadu_ps(of.offset + 16 * k);
      mean[k] = _mm512_loadu_ps(of.mean + 16 * k);
      sums[k] = products[k] = _mm512_setzero_ps();
    }
    for (std::size_t r = 0; r < s.count; ++r, x += s.in, dy += s.out) {
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        __m512 where = widened_16(x + 16 * k), z = _mm512_fmadd_ps(where, scale[k], offset[k]);
        for (std::size_t p = 1; p < s.places.size(); ++p) {
          __m512 const here = widened_16(x + s.places[p] + 16 * k),
                       next = _mm512_fmadd_ps(here, scale[k], offset[k]);
          __mmask16 const greater = _mm512_cmp_ps_mask(next, z, _CMP_GT_OQ);
          where = _mm512_mask_mov_ps(where, greater, here);
          z = _mm512_mask_mov_ps(z, greater, next);
        }
        auto const taken = __mmask16(_mm512_cmp_ps_mask(z, _mm512_setzero_ps(), _CMP_GT_OQ) | passes);
        __m512 const g = _mm512_maskz_mov_ps(taken, widened_16(dy + 16 * k));
        sums[k] += g;
        products[k] = _mm512_fmadd_ps(g, where - mean[k], products[k]);
      }
    }
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      _mm512_storeu_ps(sum + 16 * k, _mm512_loadu_ps(sum + 16 * k) + sums[k]);
      _mm512_storeu_ps(product + 16 * k, _mm512_loadu_ps(product + 16 * k) + products[k]);
    }
  }

  /// dx = dz · of_dy + x · of_x + rest, with `after_relu` where x > 0. The first of a window's equal greatest
  /// takes its dz.
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void write_gradients(
      strip const& s, bool relu, bool after_relu, half const* x, half const* dy, norm_arrays<float> const& of,
      half* dx) {
    __mmask16 const passes = relu ? __mmask16(0) : all, kept = after_relu ? __mmask16(0) : all;
    __m512 const none = _mm512_setzero_ps();
    __m512 scale[2], offset[2], of_dy[2], of_x[2], rest[2];
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 2; ++k) {
      scale[k] = _mm512_loadu_ps(of.scale + 16 * k), offset[k] = _mm512_loadu_ps(of.offset + 16 * k);
      of_dy[k] = _mm512_loadu_ps(of.of_dy + 16 * k), of_x[k] = _mm512_loadu_ps(of.of_x + 16 * k);
      rest[k] = _mm512_loadu_ps(of.rest + 16 * k);
    }
    for (std::size_t r = 0; r < s.count; ++r, x += s.in, dx += s.in, dy += s.out) {
      __m512 most[2], left[2];
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        most[k] = _mm512_fmadd_ps(widened_16(x + 16 * k), scale[k], offset[k]);
        for (std::size_t p = 1; p < s.places.size(); ++p) {
          __m512 const next = _mm512_fmadd_ps(widened_16(x + s.places[p] + 16 * k), scale[k], offset[k]);
          most[k] = _mm512_mask_mov_ps(most[k], _mm512_cmp_ps_mask(next, most[k], _CMP_GT_OQ), next);
        }
        left[k] = _mm512_maskz_mov_ps(__mmask16(_mm512_cmp_ps_mask(most[k], none, _CMP_GT_OQ) | passes),
                                      widened_16(dy + 16 * k));
      }
      for (std::size_t p = 0; p < s.places.size(); ++p) {
        std::size_t const at = s.places[p];
        __m512 d[2];
#pragma GCC unroll 2
        for (std::size_t k = 0; k < 2; ++k) {
          __m512 const here = widened_16(x + at + 16 * k);
          __m512 g = left[k];
          if (s.places.size() > 1) {
            __m512 const z = _mm512_fmadd_ps(here, scale[k], offset[k]);
            g = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(z, most[k], _CMP_GE_OQ), g);
            left[k] -= g;
          }
          d[k] = _mm512_fmadd_ps(g, of_dy[k], _mm512_fmadd_ps(here, of_x[k], rest[k]));
          d[k] = _mm512_maskz_mov_ps(__mmask16(_mm512_cmp_ps_mask(here, none, _CMP_GT_OQ) | kept), d[k]);
        }
        store_32(dx + at, d[0], d[1]);
      }
    }
  }

 private:
  static constexpr __mmask16 all = 0xffff;
};

}  // namespace edl::detail::narrow_norm

#endif
