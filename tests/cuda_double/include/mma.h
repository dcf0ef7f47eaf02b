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

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(M == 16 && N == 16 && K == 16);
  static constexpr bool sums = std::is_same_v<Use, accumulator>;
  static constexpr int num_elements = sums ? 8 : 256;
  float x[num_elements];  ///< [row][column]; of sums those from the thread's first on
};

inline int first_of_lane() { return int(threadIdx.x % 32) * 8; }

template <class Fragment>
void fill_fragment(Fragment& f, float v) {
  for (float& each : f.x) each = v;
}

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, T const* from, unsigned stride) {
  if (reinterpret_cast<std::uintptr_t>(from) % 32 != 0 || stride % 8 != 0) __builtin_trap();
  __syncwarp();
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      bool const by_rows = std::is_same_v<Layout, row_major>;
      T const& v = from[by_rows ? row * int(stride) + column : column * int(stride) + row];
      f.x[row * 16 + column] = std::bit_cast<float>(std::uint32_t(std::bit_cast<std::uint16_t>(v)) << 16);
    }
}

template <class A, class B, class Sums>
void mma_sync(Sums& d, A const& a, B const& b, Sums const& c) {
  for (int i = 0; i < 8; ++i) {
    int const row = (first_of_lane() + i) / 16, column = (first_of_lane() + i) % 16;
    float sum = c.x[i];
    for (int k = 0; k < 16; ++k) sum += a.x[row * 16 + k] * b.x[k * 16 + column];
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
