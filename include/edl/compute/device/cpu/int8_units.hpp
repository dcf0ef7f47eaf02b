// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "edl/compute/device/cpu/lanes.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#include "edl/compute/device/cpu/tile_unit.hpp"
#endif

/// Products of whole numbers of 8 bits, summed in 32 bits, which has no error. So all units give the same
/// sums.
namespace edl::detail {

/// Columns of a right factor stand in panels of 16. A panel has four rows side by side, number by number, in
/// lines of 64 bytes. Its lines are as many as make whole tiles of 16, with zeros at the end of each run.
struct int8_panel {
  static constexpr std::size_t columns = 16, depth = 64, line = 64, tile = 1024;
};

/// sums (rows × columns of the panels, 32 apart) = left · right.
struct int8_block {
  static constexpr std::size_t most_rows = 32, most_panels = 2, stride = 32;

  std::int8_t const *left, *right;
  std::size_t runs, length;        // both factors are so many runs of so many numbers
  std::size_t left_run, left_row;  // from a run to the next, from a row to the next
  std::size_t right_panel;         // from a panel to the next
  std::size_t rows, panels;        // at least 1
  std::int32_t const* too_much;    // 128 times the sum of each column of the right factor
  std::int32_t* sums;

  std::size_t lines() const { return (length + 3) / 4; }
  std::size_t tiles() const { return (length + int8_panel::depth - 1) / int8_panel::depth; }
};

constexpr float most_of_int8 = 127;

/// The whole number of x · inverse, from −127 to 127; 0 for a NaN.
inline std::int8_t quantised(float x, float inverse) {
  // Added and taken away, this leaves the nearest whole number, ties to even.
  constexpr float shift = 0x1.8p23f;
  float v = x * inverse;
  v = v < -most_of_int8 ? -most_of_int8 : v > most_of_int8 ? most_of_int8 : v;
  return std::int8_t(v == v ? v + shift - shift : 0.0f);
}

/// Sums of some rows, where their results go, and what they are times besides.
struct int8_results {
  static constexpr std::size_t stride = int8_block::stride;

  std::size_t rows, columns;  // at most 32
  std::int32_t const* sums;
  float* const* y;                 // of each row; null: nobody wants it
  float const* const* scales;      // likewise
  float const *of_columns, *bias;  // null: none
  bool relu;
};

/// On any processor.
struct int8_plain {
  static constexpr std::string_view name = "plain loops";
  struct session {
    session() {}
  };

  /// The bits of the greatest magnitude, which are in the same order as magnitudes.
  static std::int32_t greatest(std::size_t n, float const* x) {
    std::int32_t most = 0;
    for (std::size_t i = 0; i < n; ++i)
      most = std::max(most, std::bit_cast<std::int32_t>(x[i]) & std::int32_t(0x7fffffff));
    return most;
  }

  static void quantise(std::size_t n, float const* x, float inverse, std::int8_t* to) {
    for (std::size_t i = 0; i < n; ++i) to[i] = quantised(x[i], inverse);
  }

  /// y = sums · both scales + bias, rounded once, and with `relu` no less than 0.
  static void finish(int8_results const& r) {
    for (std::size_t i = 0; i < r.rows; ++i)
      for (std::size_t j = 0; r.y[i] && j < r.columns; ++j) {
        float const z = __builtin_fmaf(float(r.sums[i * r.stride + j]), *r.scales[i] * r.of_columns[j],
                                       r.bias ? r.bias[j] : 0);
        r.y[i][j] = r.relu && z < 0 ? 0 : z;
      }
  }

  static void multiply(int8_block const& b) {
    typedef std::int8_t bytes __attribute__((vector_size(8)));
    typedef std::int16_t products __attribute__((vector_size(16)));
    typedef std::int32_t wholes __attribute__((vector_size(32)));
    typedef std::uint64_t fours __attribute__((vector_size(16)));
    for (std::size_t i = 0; i < b.rows; ++i)
      for (std::size_t p = 0; p < b.panels; ++p) {
        wholes sums[8]{};  // each of two columns, number by number
        for (std::size_t r = 0; r < b.runs; ++r) {
          std::int8_t const* x = b.left + i * b.left_row + r * b.left_run;
          std::int8_t const* w = b.right + p * b.right_panel + r * b.tiles() * int8_panel::tile;
          for (std::size_t l = b.lines(); l > 0; --l, x += 4, w += int8_panel::line) {
            std::int16_t const four[4] = {x[0], x[1], x[2], x[3]};
            auto const left = std::bit_cast<products>(fours{} + std::bit_cast<std::uint64_t>(four));
            for (std::size_t q = 0; q < 8; ++q)
              sums[q] += __builtin_convertvector(
                  left * __builtin_convertvector(load<bytes>(w + 8 * q), products), wholes);
          }
        }
        for (std::size_t j = 0; j < int8_panel::columns; ++j) {
          wholes const& s = sums[j / 2];
          std::size_t const at = j % 2 * 4;
          b.sums[i * int8_block::stride + p * int8_panel::columns + j] =
              s[at] + s[at + 1] + s[at + 2] + s[at + 3];
        }
      }
  }
};

#ifdef __x86_64__

/// By AVX512-VNNI. Its left factors have no sign: 128 is added to them, and what that adds is taken away.
struct int8_vectors {
  static constexpr std::string_view name = "vectors";
  struct session {
    session() {}
  };

  static bool here() { return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"); }

  [[gnu::target("avx512f,avx512bw")]] static std::int32_t greatest(std::size_t n, float const* x) {
    constexpr std::size_t chains = 4, step = chains * 16;
    __m512i const magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i most[chains]{};
    std::size_t i = 0;
    for (; i + step <= n; i += step)
      for (std::size_t c = 0; c < chains; ++c)
        most[c] = _mm512_maskz_max_epi32(__mmask16(-1), most[c],
                                         _mm512_and_si512(magnitude, _mm512_loadu_si512(x + i + 16 * c)));
    alignas(64) std::int32_t all[chains][16];
    std::memcpy(all, most, sizeof all);
    std::int32_t greatest = int8_plain::greatest(n - i, x + i);
    for (auto const& of_chain : all)
      for (std::int32_t m : of_chain) greatest = std::max(greatest, m);
    return greatest;
  }

  [[gnu::target("avx512f,avx512bw")]] static void quantise(std::size_t n, float const* x, float inverse,
                                                           std::int8_t* to) {
    __m512 const by = _mm512_set1_ps(inverse), most = _mm512_set1_ps(most_of_int8),
                 least = _mm512_set1_ps(-most_of_int8);
    for (std::size_t i = 0; i < n; i += 16) {
      auto const some = __mmask16(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
      __m512 const v = _mm512_maskz_loadu_ps(some, x + i) * by;
      __mmask16 const numbers = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
      __m512 const within = _mm512_maskz_min_ps(numbers, _mm512_maskz_max_ps(numbers, v, least), most);
      _mm512_mask_cvtepi32_storeu_epi8(to + i, some, _mm512_maskz_cvtps_epi32(numbers, within));
    }
  }

  [[gnu::target("avx512f,avx512bw")]] static void finish(int8_results const& r) {
    auto const mask = [](std::size_t n) { return __mmask16(n < 16 ? (1u << n) - 1 : 0xffff); };
    for (std::size_t j = 0; j < r.columns; j += 16) {
      __mmask16 const some = mask(r.columns - j);
      __m512 const of_columns = _mm512_maskz_loadu_ps(some, r.of_columns + j),
                   bias = r.bias ? _mm512_maskz_loadu_ps(some, r.bias + j) : _mm512_setzero_ps(),
                   least = _mm512_set1_ps(r.relu ? 0.0f : -__builtin_inff());
      for (std::size_t i = 0; i < r.rows; ++i) {
        if (!r.y[i]) continue;
        __m512 const sums = _mm512_maskz_cvtepi32_ps(some, _mm512_loadu_si512(r.sums + i * r.stride + j)),
                     z = _mm512_fmadd_ps(sums, of_columns * *r.scales[i], bias);
        // A maximum with a NaN is its second factor.
        _mm512_mask_storeu_ps(r.y[i] + j, some, _mm512_maskz_max_ps(some, least, z));
      }
    }
  }

  static void multiply(int8_block const& b) { b.panels > 1 ? all_rows<2>(b) : all_rows<1>(b); }

 private:
  template <int Panels>
  static void all_rows(int8_block const& b) {
    std::size_t i = 0;
    for (; i + 8 <= b.rows; i += 8) some_rows<8, Panels>(b, i);
    for (; i + 4 <= b.rows; i += 4) some_rows<4, Panels>(b, i);
    for (; i < b.rows; ++i) some_rows<1, Panels>(b, i);
  }

  template <int Rows, int Panels>
  [[gnu::target("avx512f,avx512bw,avx512vnni"), gnu::always_inline]] static inline void add_line(
      int8_block const& b, std::int8_t const* x, std::int8_t const* w, __m512i (&sums)[Rows][Panels]) {
    __m512i right[Panels];
    for (int p = 0; p < Panels; ++p) right[p] = _mm512_loadu_si512(w + std::size_t(p) * b.right_panel);
    for (int i = 0; i < Rows; ++i) {
      std::uint32_t four;
      std::memcpy(&four, x + std::size_t(i) * b.left_row, sizeof four);
      __m512i const left = _mm512_set1_epi32(int(four ^ 0x80808080u));
      for (int p = 0; p < Panels; ++p) sums[i][p] = _mm512_dpbusd_epi32(sums[i][p], left, right[p]);
    }
  }

  template <int Rows, int Panels>
  [[gnu::target("avx512f,avx512bw,avx512vnni"), gnu::noinline]] static void some_rows(int8_block const& b,
                                                                                      std::size_t first) {
    // A row alone has several chains of sums, since one waits for its last.
    constexpr int chains = Rows > 1 ? 1 : 4;
    __m512i sums[chains][Rows][Panels];
    for (int c = 0; c < chains; ++c)
      for (int i = 0; i < Rows; ++i)
        for (int p = 0; p < Panels; ++p) sums[c][i][p] = _mm512_setzero_si512();
    for (std::size_t r = 0; r < b.runs; ++r) {
      std::int8_t const* x = b.left + first * b.left_row + r * b.left_run;
      std::int8_t const* w = b.right + r * b.tiles() * int8_panel::tile;
      std::size_t left = b.lines();
      for (; left >= chains; left -= chains)
        for (int c = 0; c < chains; ++c, x += 4, w += int8_panel::line) add_line(b, x, w, sums[c]);
      for (; left > 0; --left, x += 4, w += int8_panel::line) add_line(b, x, w, sums[0]);
    }
    for (int i = 0; i < Rows; ++i)
      for (int p = 0; p < Panels; ++p) {
        __m512i const too_much = _mm512_loadu_si512(b.too_much + std::size_t(p) * int8_panel::columns);
        __m512i sum = sums[0][i][p];
        for (int c = 1; c < chains; ++c) sum = _mm512_add_epi32(sum, sums[c][i][p]);
        _mm512_storeu_si512(
            b.sums + (first + std::size_t(i)) * int8_block::stride + std::size_t(p) * int8_panel::columns,
            _mm512_sub_epi32(sum, too_much));
      }
  }
};

/// By the matrix unit. It reads 16 or 32 rows, whatever is in those that nobody asks for.
struct int8_tiles : int8_vectors {
  static constexpr std::string_view name = "matrix unit";
  using session = tiled::unit::session;

  static bool here() {
    static bool const has = [] {
      unsigned a = 0, b = 0, c = 0, d = 0;
      constexpr unsigned amx_int8 = 1u << 25;
      return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & amx_int8) && tiled::has_unit() &&
             int8_vectors::here();
    }();
    return has;
  }

  static void multiply(int8_block const& b) {
    if (b.rows < 3) return int8_vectors::multiply(b);  // a tile takes as long for one row as for 16
    b.rows > 16 ? b.panels > 1 ? some<2, 2>(b) : some<2, 1>(b) : b.panels > 1 ? some<1, 2>(b) : some<1, 1>(b);
  }

 private:
  template <int Left, int Right>
  [[gnu::target("amx-tile,amx-int8"), gnu::noinline]] static void some(int8_block const& b) {
    constexpr bool below = Left > 1, beside = Right > 1;
    constexpr std::size_t line = int8_panel::line, stride = int8_block::stride * sizeof(std::int32_t);
    std::size_t const row = b.left_row, tiles = b.tiles();
    asm volatile("" ::: "memory");  // GCC 12 does not know that these instructions read memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    std::int8_t const* right = b.right;
    for (std::size_t r = 0; r < b.runs; ++r) {
      std::int8_t const* left = b.left + r * b.left_run;
      for (std::size_t k = 0; k < tiles; ++k, left += int8_panel::depth, right += int8_panel::tile) {
        _tile_loadd(4, left, row);
        _tile_loadd(6, right, line);
        _tile_dpbssd(0, 4, 6);
        if constexpr (beside) {
          _tile_loadd(7, right + b.right_panel, line);
          _tile_dpbssd(1, 4, 7);
        }
        if constexpr (below) {
          _tile_loadd(5, left + 16 * row, row);
          _tile_dpbssd(2, 5, 6);
        }
        if constexpr (below && beside) _tile_dpbssd(3, 5, 7);
      }
    }
    _tile_stored(0, b.sums, stride);
    if constexpr (beside) _tile_stored(1, b.sums + 16, stride);
    if constexpr (below) _tile_stored(2, b.sums + 16 * int8_block::stride, stride);
    if constexpr (below && beside) _tile_stored(3, b.sums + 16 * int8_block::stride + 16, stride);
  }
};

/// work(unit) with the fastest unit of this processor.
template <class Work>
auto by_int8_unit(Work&& work) {
  if (int8_tiles::here()) return work(int8_tiles{});
  if (int8_vectors::here()) return work(int8_vectors{});
  return work(int8_plain{});
}

/// Whether it has one that is faster than float32's.
inline bool has_int8_unit() { return int8_vectors::here(); }

#else

template <class Work>
auto by_int8_unit(Work&& work) {
  return work(int8_plain{});
}
inline bool has_int8_unit() { return false; }

#endif

}  // namespace edl::detail
