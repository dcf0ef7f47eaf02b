// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __x86_64__

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Tiles of Winograd's algorithm F(2 x 2, 3 x 3) (Lavin and Gray, 2015) by vectors of AVX-512. Factors are
/// bfloat16, everything else is float32. Only processors with AVX512-BF16 may call these functions.
///
/// Channels go by 32. Read as 16 words of 32 bits they are those of even numbers in the upper or, shifted,
/// the lower halves. So factors are kept as a block of 16 even channels and one of 16 odd channels.
namespace edl::detail::winograd {

using half = std::uint16_t;         // a bfloat16
constexpr std::size_t places = 16;  // of a tile, 4 x 4
constexpr std::size_t block = 32;   // channels

/// Where a tile's places lie, in the middle of a map.
template <class Half>
struct inner_tile {
  Half* first;
  std::ptrdiff_t line, next;

  Half* operator()(int row, int column) const { return first + row * line + column * next; }
};
/// Likewise of any tile. What lies outside of the map is somewhere else, or nowhere.
template <int Side, class Half>
struct edge_tile {
  std::array<Half*, std::size_t(Side) * Side> all;

  Half* operator()(int row, int column) const { return all[std::size_t(row * Side + column)]; }
};

/// A vector's numbers of 16 bits are taken in turns from its lower and upper halves.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline __m512i interleaved(
    __m512i x) {
  // 0, 16, 1, 17, …
  __m512i const order =
      _mm512_set_epi32(0x1f000f, 0x1e000e, 0x1d000d, 0x1c000c, 0x1b000b, 0x1a000a, 0x190009, 0x180008,
                       0x170007, 0x160006, 0x150005, 0x140004, 0x130003, 0x120002, 0x110001, 0x100000);
  return _mm512_maskz_permutexvar_epi16(~__mmask32(0), order, x);
}

/// And back: first those of even numbers.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline __m512i parted(__m512i x) {
  __m512i const order =
      _mm512_set_epi32(0x1f001d, 0x1b0019, 0x170015, 0x130011, 0x0f000d, 0x0b0009, 0x070005, 0x030001,
                       0x1e001c, 0x1a0018, 0x160014, 0x120010, 0x0e000c, 0x0a0008, 0x060004, 0x020000);
  return _mm512_maskz_permutexvar_epi16(~__mmask32(0), order, x);
}

/// 32 rounded numbers, the lower ones first.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline __m512i rounded_pair(
    __m512 low, __m512 high) {
  return __m512i(_mm512_cvtne2ps_pbh(high, low));
}

/// The channels of even or odd numbers, of 32.
template <bool Odd>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline __m512 every_second(
    half const* x) {
  __m512i const words = _mm512_loadu_si512(x);
  if constexpr (Odd) return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(-0x10000)));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(__mmask16(-1), words, 16));
}

/// v = Bᵀ d B: places of an input, for 16 channels.
template <bool Odd, class Tile>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void transform_input(
    Tile const& from, std::size_t channel, __m512* v) {
  __m512 r[places];
  for (int j = 0; j < 4; ++j) {
    __m512 const a = every_second<Odd>(from(0, j) + channel), b = every_second<Odd>(from(1, j) + channel),
                 c = every_second<Odd>(from(2, j) + channel), d = every_second<Odd>(from(3, j) + channel);
    r[j] = a - c;
    r[4 + j] = b + c;
    r[8 + j] = c - b;
    r[12 + j] = b - d;
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = r[i] - r[i + 2];
    v[i + 1] = r[i + 1] + r[i + 2];
    v[i + 2] = r[i + 2] - r[i + 1];
    v[i + 3] = r[i + 1] - r[i + 3];
  }
}

/// u = G d Gᵀ of the places of an output, 2 x 2, for 16 channels.
template <bool Odd, class Tile>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void transform_output(
    Tile const& from, std::size_t channel, __m512* u) {
  __m512 const by = _mm512_set1_ps(0.5f);
  __m512 r[8];
  for (int j = 0; j < 2; ++j) {
    r[j] = every_second<Odd>(from(0, j) + channel);
    r[6 + j] = every_second<Odd>(from(1, j) + channel);
    r[2 + j] = (r[j] + r[6 + j]) * by;
    r[4 + j] = (r[j] - r[6 + j]) * by;
  }
  for (int i = 0; i < 4; ++i) {
    u[4 * i] = r[2 * i];
    u[4 * i + 1] = (r[2 * i] + r[2 * i + 1]) * by;
    u[4 * i + 2] = (r[2 * i] - r[2 * i + 1]) * by;
    u[4 * i + 3] = r[2 * i + 1];
  }
}

/// An input's tile as factors: channels one after the other, places `plane` numbers apart.
template <class Tile>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void input_factors(Tile const& from,
                                                                           std::size_t channels, half* to,
                                                                           std::size_t plane) {
  for (std::size_t c = 0; c < channels; c += block) {
    __m512 even[places], odd[places];
    transform_input<false>(from, c, even);
    transform_input<true>(from, c, odd);
    for (std::size_t p = 0; p < places; ++p)
      _mm512_storeu_si512(to + p * plane + c, rounded_pair(even[p], odd[p]));
  }
}

/// Two tiles of an input, channel by channel side by side.
template <bool Odd, class Tile>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void input_pair_half(
    Tile const& first, Tile const& second, std::size_t c, half* to, std::size_t plane) {
  __m512 a[places], b[places];
  transform_input<Odd>(first, c, a);
  transform_input<Odd>(second, c, b);
  for (std::size_t p = 0; p < places; ++p)
    _mm512_storeu_si512(to + p * plane, interleaved(rounded_pair(a[p], b[p])));
}
template <class Tile>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void input_pair(Tile const& first, Tile const& second,
                                                                        std::size_t channels, half* to,
                                                                        std::size_t plane) {
  for (std::size_t c = 0; c < channels; c += block) {
    input_pair_half<false>(first, second, c, to + 2 * c, plane);
    input_pair_half<true>(first, second, c, to + 2 * c + block, plane);
  }
}

/// Two tiles of an output likewise. Their sums are added to `sums`, which has the order of the factors.
template <bool Odd, class Tile>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void output_pair_half(
    Tile const& first, Tile const& second, std::size_t c, half* to, std::size_t plane, float* sums) {
  __m512 a[places], b[places];
  transform_output<Odd>(first, c, a);
  transform_output<Odd>(second, c, b);
  // The middle is a quarter of the sum.
  _mm512_storeu_ps(sums, _mm512_loadu_ps(sums) + (a[5] + b[5]) * _mm512_set1_ps(4));
  for (std::size_t p = 0; p < places; ++p)
    _mm512_storeu_si512(to + p * plane, interleaved(rounded_pair(a[p], b[p])));
}
/// `columns` of them, which follow one another as a product wants them.
template <class Tile>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void output_pair(Tile const& first,
                                                                         Tile const& second,
                                                                         std::size_t channel,
                                                                         std::size_t columns, half* to,
                                                                         std::size_t plane, float* sums) {
  for (std::size_t c = 0; c < columns; c += block) {
    output_pair_half<false>(first, second, channel + c, to + 2 * c, plane, sums + c);
    output_pair_half<true>(first, second, channel + c, to + 2 * c + block, plane, sums + c + 16);
  }
}

/// u = G g Gᵀ of 16 kernels, 3 x 3, whose weights are `step` numbers apart.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void transform_kernel(
    float const* kernel, std::ptrdiff_t step, __m512* u) {
  __m512 const by = _mm512_set1_ps(0.5f);
  __m512 r[12];
  for (int j = 0; j < 3; ++j) {
    __m512 const a = _mm512_loadu_ps(kernel + j * step), b = _mm512_loadu_ps(kernel + (3 + j) * step),
                 c = _mm512_loadu_ps(kernel + (6 + j) * step);
    r[j] = a;
    r[3 + j] = (a + c + b) * by;
    r[6 + j] = (a + c - b) * by;
    r[9 + j] = c;
  }
  for (int i = 0; i < 4; ++i) {
    __m512 const ends = r[3 * i] + r[3 * i + 2];
    u[4 * i] = r[3 * i];
    u[4 * i + 1] = (ends + r[3 * i + 1]) * by;
    u[4 * i + 2] = (ends - r[3 * i + 1]) * by;
    u[4 * i + 3] = r[3 * i + 2];
  }
}

/// Kernels of two input channels and 16 filters as factors, side by side.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void kernel_factors(
    float const* first, float const* second, std::ptrdiff_t step, half* to, std::size_t plane) {
  __m512 a[places], b[places];
  transform_kernel(first, step, a);
  transform_kernel(second, step, b);
  for (std::size_t p = 0; p < places; ++p)
    _mm512_storeu_si512(to + p * plane, interleaved(rounded_pair(a[p], b[p])));
}

/// The same where filters are what is summed over: 32 of them, of 16 input channels that are `next` numbers
/// apart. Pairs of filters are `row` numbers apart, and places `plane`.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void turned_kernel_factors(
    float const* kernel, std::size_t next, std::ptrdiff_t step, half* to, std::size_t row,
    std::size_t plane) {
  alignas(64) half words[places][16][block];
  for (std::size_t c = 0; c < 16; ++c) {
    __m512 a[places], b[places];
    float const* const last = kernel + c * next + 8 * step;
    transform_kernel(last, -step, a);
    transform_kernel(last + 16, -step, b);
    for (std::size_t p = 0; p < places; ++p)
      _mm512_store_si512(words[p][c], parted(rounded_pair(a[p], b[p])));
  }
  __m512i const lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (std::size_t p = 0; p < places; ++p) {
    __m512i x[16];
    for (std::size_t c = 0; c < 16; ++c) x[c] = _mm512_load_si512(words[p][c]);
    for (unsigned d = 8; d > 0; d /= 2) {  // transposes 16 x 16 words, by Eklundh's steps
      auto const upper = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(int(d)));
      __m512i const from = _mm512_xor_si512(lanes, _mm512_set1_epi32(int(d)));
      for (unsigned c = 0; c < 16; ++c) {
        if (c & d) continue;
        __m512i const a = x[c], b = x[c + d];
        x[c] = _mm512_mask_permutexvar_epi32(a, upper, from, b);
        x[c + d] = _mm512_mask_permutexvar_epi32(b, __mmask16(~upper), from, a);
      }
    }
    for (std::size_t q = 0; q < 16; ++q) _mm512_storeu_si512(to + p * plane + q * row, x[q]);
  }
}

/// The left factor of a product: pairs of numbers, whose places grow by these with rows and with pairs.
struct rows_of_pairs {
  half const* at;
  std::size_t row, pair;
};

/// y (Rows x 16 Columns) = or += a b, where b has `pairs` rows of 16 Columns pairs.
template <int Rows, int Columns>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void multiply_block(rows_of_pairs a, half const* b,
                                                                            std::size_t pairs, float* y,
                                                                            std::size_t stride, bool add) {
  __m512 sums[Rows][Columns];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j)
      sums[i][j] = add ? _mm512_loadu_ps(y + std::size_t(i) * stride + 16 * j) : _mm512_setzero_ps();
  for (std::size_t k = 0; k < pairs; ++k) {
    __m512bh right[Columns];
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) right[j] = __m512bh(_mm512_loadu_si512(b + 32 * j));
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      int word = 0;
      std::memcpy(&word, a.at + std::size_t(i) * a.row, sizeof word);
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j)
        sums[i][j] = _mm512_dpbf16_ps(sums[i][j], __m512bh(_mm512_set1_epi32(word)), right[j]);
    }
    a.at += a.pair;
    b += 32 * Columns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) _mm512_storeu_ps(y + std::size_t(i) * stride + 16 * j, sums[i][j]);
}

/// The same of any number of rows.
template <int Rows, int Columns>
void multiply_rows(std::size_t rows, rows_of_pairs a, half const* b, std::size_t pairs, float* y,
                   std::size_t stride, bool add) {
  auto const blocks = [&]<int Some>(std::integral_constant<int, Some>) {
    for (; rows >= Some; rows -= Some, a.at += Some * a.row, y += Some * stride)
      multiply_block<Some, Columns>(a, b, pairs, y, stride, add);
  };
  blocks(std::integral_constant<int, Rows>());
  blocks(std::integral_constant<int, 4>());
  blocks(std::integral_constant<int, 2>());
  blocks(std::integral_constant<int, 1>());
}
inline void multiply(std::size_t rows, std::size_t columns, rows_of_pairs a, half const* b, std::size_t pairs,
                     float* y, std::size_t stride, bool add) {
  columns == 64 ? multiply_rows<6, 4>(rows, a, b, pairs, y, stride, add)
                : multiply_rows<12, 2>(rows, a, b, pairs, y, stride, add);
}

/// Aᵀ m A: an output's places 2 x 2, of sums for 16 channels that are `plane` numbers apart.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void transform_sums(
    float const* m, std::size_t plane, __m512* y) {
  __m512 r[8];
  for (std::size_t j = 0; j < 4; ++j) {
    __m512 const b = _mm512_loadu_ps(m + (4 + j) * plane), c = _mm512_loadu_ps(m + (8 + j) * plane);
    r[j] = _mm512_loadu_ps(m + j * plane) + b + c;
    r[4 + j] = b - c - _mm512_loadu_ps(m + (12 + j) * plane);
  }
  for (int i = 0; i < 2; ++i) {
    y[2 * i] = r[4 * i] + r[4 * i + 1] + r[4 * i + 2];
    y[2 * i + 1] = r[4 * i + 1] - r[4 * i + 2] - r[4 * i + 3];
  }
}

/// An output's tile of sums: bias and relu, rounded. Places without a `to` are left out.
template <class Tile>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void finish_tile(float const* m, std::size_t plane,
                                                                         std::size_t channels,
                                                                         float const* bias, bool relu,
                                                                         Tile const& to) {
  for (std::size_t c = 0; c < channels; c += block) {
    __m512 low[4], high[4];
    transform_sums(m + c, plane, low);
    transform_sums(m + c + 16, plane, high);
    for (int q = 0; q < 4; ++q) {
      if (bias) {
        low[q] += _mm512_loadu_ps(bias + c);
        high[q] += _mm512_loadu_ps(bias + c + 16);
      }
      if (relu) {
        low[q] = _mm512_maskz_max_ps(__mmask16(-1), low[q], _mm512_setzero_ps());
        high[q] = _mm512_maskz_max_ps(__mmask16(-1), high[q], _mm512_setzero_ps());
      }
      if (half* const place = to(q / 2, q % 2)) _mm512_storeu_si512(place + c, rounded_pair(low[q], high[q]));
    }
  }
}

/// A kernel's gradient, 3 x 3 weights `step` numbers apart, for 32 filters. It is of the sums of `parts`
/// threads, `next` numbers apart, whose places are `plane` numbers apart.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] inline void finish_kernel(
    float const* sums, int parts, std::size_t next, std::size_t plane, float* kernel, std::size_t step) {
  __m512 g[2][9];
  for (std::size_t h = 0; h < 2; ++h) {
    __m512 m[places], r[12];
    for (std::size_t p = 0; p < places; ++p) {
      float const* const from = sums + 16 * h + p * plane;
      m[p] = _mm512_loadu_ps(from);
      for (int t = 1; t < parts; ++t) m[p] += _mm512_loadu_ps(from + std::size_t(t) * next);
    }
    for (int j = 0; j < 4; ++j) {
      r[j] = m[j] + m[4 + j] + m[8 + j];
      r[4 + j] = m[4 + j] - m[8 + j];
      r[8 + j] = m[4 + j] + m[8 + j] - m[12 + j];
    }
    for (int i = 0; i < 3; ++i) {
      g[h][3 * i] = r[4 * i] + r[4 * i + 1] + r[4 * i + 2];
      g[h][3 * i + 1] = r[4 * i + 1] - r[4 * i + 2];
      g[h][3 * i + 2] = r[4 * i + 1] + r[4 * i + 2] - r[4 * i + 3];
    }
  }
  __m512i const first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
                second = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  for (std::size_t w = 0; w < 9; ++w) {
    _mm512_storeu_ps(kernel + w * step, _mm512_permutex2var_ps(g[0][w], first, g[1][w]));
    _mm512_storeu_ps(kernel + w * step + 16, _mm512_permutex2var_ps(g[0][w], second, g[1][w]));
  }
}

}  // namespace edl::detail::winograd

#endif
