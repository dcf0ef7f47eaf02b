// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by a warp. Each of its threads keeps a share of the sums, and whole factors.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
}  // namespace precision

/// To the nearest of 11 bits, ties away from zero.
inline float __float_to_tf32(float x) {
  if (x != x) return x;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000) & ~0x1fffu);
}

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static constexpr bool sums = std::is_same_v<Use, accumulator>;
  static_assert(M == 16 && N == 16 && K == (std::is_same_v<T, precision::tf32> || (sums && K == 8) ? 8 : 16));
  static constexpr int rows = std::is_same_v<Use, matrix_a> ? 16 : K,
                       columns = std::is_same_v<Use, matrix_a> ? K : 16;
  static constexpr int num_elements = sums ? 8 : 16 * K;
  float x[num_elements];  ///< [row][column]; of sums those from the thread's first on
};

inline int first_of_lane() { return int(threadIdx.x % 32) * 8; }

template <class Fragment>
void fill_fragment(Fragment& f, float v) {
  for (float& each : f.x) each = v;
}

/// As tensor cores see it: of a float32 they leave bits out.
inline float seen(__nv_bfloat16 v) {
  return std::bit_cast<float>(std::uint32_t(std::bit_cast<std::uint16_t>(v)) << 16);
}
inline float seen(float v) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) & ~0x1fffu); }

template <class Use, int K, class T, class Layout, class Memory>
void load_matrix_sync(fragment<Use, 16, 16, K, T, Layout>& f, Memory const* from, unsigned stride) {
  using fragments = fragment<Use, 16, 16, K, T, Layout>;
  if (reinterpret_cast<std::uintptr_t>(from) % 32 != 0 || stride * sizeof(Memory) % 16 != 0) __builtin_trap();
  __syncwarp();
  for (int row = 0; row < fragments::rows; ++row)
    for (int column = 0; column < fragments::columns; ++column) {
      bool const by_rows = std::is_same_v<Layout, row_major>;
      f.x[row * fragments::columns + column] =
          seen(from[by_rows ? row * int(stride) + column : column * int(stride) + row]);
    }
}

template <class A, class B, class Sums>
void mma_sync(Sums& d, A const& a, B const& b, Sums const& c) {
  constexpr int depth = A::columns;
  for (int i = 0; i < 8; ++i) {
    int const row = (first_of_lane() + i) / 16, column = (first_of_lane() + i) % 16;
    float sum = c.x[i];
    for (int k = 0; k < depth; ++k) sum += a.x[row * depth + k] * b.x[k * 16 + column];
    d.x[i] = sum;
  }
}

template <class Fragment>
void store_matrix_sync(float* to, Fragment const& f, unsigned stride, layout_t layout) {
  if (reinterpret_cast<std::uintptr_t>(to) % 32 != 0 || stride % 8 != 0) __builtin_trap();
  for (int i = 0; i < 8; ++i) {
    int const row = (first_of_lane() + i) / 16, column = (first_of_lane() + i) % 16;
    to[layout == mem_row_major ? row * int(stride) + column : column * int(stride) + row] = f.x[i];
  }
  __syncwarp();
}

}  // namespace nvcuda::wmma
