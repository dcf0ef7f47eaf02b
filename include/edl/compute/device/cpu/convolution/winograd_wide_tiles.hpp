// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <type_traits>

/// Loops of Winograd's algorithm F(4 x 4, 3 x 3) in float32, 16 channels at a time. Only a processor with
/// AVX-512 may call them.
namespace edl::detail::winograd_wide {

constexpr std::size_t block = 16, side = 6, results = 4, places = side * side;

/// Bᵀ d, of six places that are `step` vectors apart.
[[gnu::always_inline, gnu::target("avx512f")]] inline void input_line(__m512 const* d, std::size_t step,
                                                                      __m512* v) {
  __m512 const four = _mm512_set1_ps(4), five = _mm512_set1_ps(5), two = _mm512_set1_ps(2);
  __m512 const d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
               d5 = d[5 * step];
  __m512 const far = d4 - four * d2, odd = d3 - four * d1, near = d4 - d2, half = d3 - d1;
  v[0] = four * d0 + (d4 - five * d2);
  v[1] = far + odd;
  v[2] = far - odd;
  v[3] = near + two * half;
  v[4] = near - two * half;
  v[5] = four * d1 + (d5 - five * d3);
}

/// v = Bᵀ d B: an input's tile as factors, places `plane` numbers apart. A place that a map lacks is null.
[[gnu::target("avx512f")]] inline void edge_factors(std::array<float const*, places> const& from,
                                                    std::size_t channels, float* to, std::size_t plane) {
  for (std::size_t c = 0; c < channels; c += block) {
    __m512 d[places], r[places], v[side];
    for (std::size_t p = 0; p < places; ++p)
      d[p] = from[p] ? _mm512_loadu_ps(from[p] + c) : _mm512_setzero_ps();
    for (std::size_t j = 0; j < side; ++j) {
      input_line(d + j, side, v);
      for (std::size_t i = 0; i < side; ++i) r[i * side + j] = v[i];
    }
    for (std::size_t i = 0; i < side; ++i) {
      input_line(r + i * side, 1, v);
      for (std::size_t j = 0; j < side; ++j) _mm512_storeu_ps(to + (i * side + j) * plane + c, v[j]);
    }
  }
}

/// The same of a tile that lies within its map: lines of it are `line` numbers apart, places `next`.
[[gnu::target("avx512f")]] inline void inner_factors(float const* from, std::size_t line, std::size_t next,
                                                     std::size_t channels, float* to, std::size_t plane) {
  for (std::size_t c = 0; c < channels; c += block) {
    __m512 r[places], v[side];
#pragma GCC unroll 6
    for (std::size_t j = 0; j < side; ++j) {
      __m512 d[side];
#pragma GCC unroll 6
      for (std::size_t i = 0; i < side; ++i) d[i] = _mm512_loadu_ps(from + i * line + j * next + c);
      input_line(d, 1, v);
#pragma GCC unroll 6
      for (std::size_t i = 0; i < side; ++i) r[i * side + j] = v[i];
    }
#pragma GCC unroll 6
    for (std::size_t i = 0; i < side; ++i) {
      input_line(r + i * side, 1, v);
#pragma GCC unroll 6
      for (std::size_t j = 0; j < side; ++j) _mm512_storeu_ps(to + (i * side + j) * plane + c, v[j]);
    }
  }
}

/// G g, of three weights.
[[gnu::always_inline, gnu::target("avx512f")]] inline void kernel_line(__m512 const* g, __m512* u) {
  __m512 const ends = g[0] + g[2], middle = g[1], last = g[2];
  __m512 const near = g[0] * _mm512_set1_ps(1 / 24.0f) + last * _mm512_set1_ps(1 / 6.0f),
               odd = middle * _mm512_set1_ps(1 / 12.0f);
  u[0] = g[0] * _mm512_set1_ps(0.25f);
  u[1] = (ends + middle) * _mm512_set1_ps(-1 / 6.0f);
  u[2] = (ends - middle) * _mm512_set1_ps(-1 / 6.0f);
  u[3] = near + odd;
  u[4] = near - odd;
  u[5] = last;
}

/// u = G g Gᵀ of 16 kernels, 3 x 3, whose weights are `step` numbers apart.
[[gnu::target("avx512f")]] inline void kernel_factors(float const* kernel, std::size_t step, float* to,
                                                      std::size_t plane) {
  __m512 r[side * 3], u[side];
  for (std::size_t j = 0; j < 3; ++j) {
    __m512 g[3];
    for (std::size_t i = 0; i < 3; ++i) g[i] = _mm512_loadu_ps(kernel + (i * 3 + j) * step);
    kernel_line(g, u);
    for (std::size_t i = 0; i < side; ++i) r[i * 3 + j] = u[i];
  }
  for (std::size_t i = 0; i < side; ++i) {
    kernel_line(r + i * 3, u);
    for (std::size_t j = 0; j < side; ++j) _mm512_storeu_ps(to + (i * side + j) * plane, u[j]);
  }
}

/// y (Rows x 16 Columns) = a b, where b has `depth` rows of 16 Columns numbers.
template <int Rows, int Columns>
[[gnu::target("avx512f")]] void multiply_block(float const* a, std::size_t a_row, float const* b,
                                               std::size_t depth, float* y) {
  __m512 sums[Rows][Columns];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) sums[i][j] = _mm512_setzero_ps();
  for (std::size_t k = 0; k < depth; ++k, b += 16 * Columns) {
    __m512 right[Columns];
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) right[j] = _mm512_loadu_ps(b + 16 * j);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      __m512 const left = _mm512_set1_ps(a[std::size_t(i) * a_row + k]);
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) sums[i][j] = _mm512_fmadd_ps(left, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) _mm512_storeu_ps(y + (i * Columns + j) * 16, sums[i][j]);
}

/// The same of any number of rows.
template <int Columns>
void multiply(std::size_t rows, float const* a, std::size_t a_row, float const* b, std::size_t depth,
              float* y) {
  auto const blocks = [&]<int Some>(std::integral_constant<int, Some>) {
    for (; rows >= Some; rows -= Some, a += Some * a_row, y += Some * Columns * 16)
      multiply_block<Some, Columns>(a, a_row, b, depth, y);
  };
  blocks(std::integral_constant<int, 12>());
  blocks(std::integral_constant<int, 8>());
  blocks(std::integral_constant<int, 4>());
  blocks(std::integral_constant<int, 1>());
}

/// Aᵀ m, of six sums.
[[gnu::always_inline, gnu::target("avx512f")]] inline void output_line(__m512 const* m, __m512* y) {
  __m512 const two = _mm512_set1_ps(2), four = _mm512_set1_ps(4), eight = _mm512_set1_ps(8);
  __m512 const near = m[1] + m[2], off = m[1] - m[2], far = m[3] + m[4], wide = m[3] - m[4];
  y[0] = m[0] + near + far;
  y[1] = off + two * wide;
  y[2] = near + four * far;
  y[3] = off + eight * wide + m[5];
}

/// Aᵀ m A, with bias and relu: an output's tile of sums, whose places are `plane` numbers apart. Lines of the
/// map are `line` numbers apart, places `next`. `rows` and `columns` of the tile are in the map.
[[gnu::target("avx512f")]] inline void finish_tile(float const* m, std::size_t plane, std::size_t channels,
                                                   float const* bias, bool relu, float* to, std::size_t line,
                                                   std::size_t next, std::size_t rows, std::size_t columns) {
  __m512 const floor = _mm512_set1_ps(relu ? 0 : -__builtin_inff());
  for (std::size_t c = 0; c < channels; c += block) {
    __m512 r[results * side], y[results];
#pragma GCC unroll 6
    for (std::size_t j = 0; j < side; ++j) {
      __m512 in[side];
#pragma GCC unroll 6
      for (std::size_t i = 0; i < side; ++i) in[i] = _mm512_loadu_ps(m + (i * side + j) * plane + c);
      output_line(in, y);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < results; ++i) r[i * side + j] = y[i];
    }
    __m512 const added = bias ? _mm512_loadu_ps(bias + c) : _mm512_setzero_ps();
    for (std::size_t i = 0; i < rows; ++i) {
      output_line(r + i * side, y);
      for (std::size_t j = 0; j < columns; ++j)
        // The second operand is what a comparison with no number leaves.
        _mm512_storeu_ps(to + i * line + j * next + c,
                         _mm512_maskz_max_ps(__mmask16(-1), floor, y[j] + added));
    }
  }
}

}  // namespace edl::detail::winograd_wide

#endif
