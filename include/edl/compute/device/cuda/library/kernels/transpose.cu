// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned tile = 32,
                   tile_rows = 8;  // of a block; each of its threads takes tile / tile_rows elements

/// to[column][row] = from[row][column], by way of shared memory, so that both are read and written in rows.
template <class In, class Out>
__global__ void __launch_bounds__(tile* tile_rows)
    transpose_kernel(unsigned rows, unsigned columns, In const* __restrict__ from, Out* __restrict__ to) {
  __shared__ float shared[tile][tile + 1];  // the odd width keeps a column's elements in different banks
  unsigned const x = threadIdx.x % tile, y = threadIdx.x / tile;
  unsigned const row = blockIdx.y * tile, column = blockIdx.x * tile;
#pragma unroll
  for (unsigned k = 0; k < tile; k += tile_rows)
    if (unsigned const i = y + k; row + i < rows && column + x < columns)
      shared[i][x] = load_one(from + std::size_t(row + i) * columns + column + x);
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < tile; k += tile_rows)
    if (unsigned const i = y + k; column + i < columns && row + x < rows)
      store_one(to + std::size_t(column + i) * rows + row + x, shared[x][i]);
}

template <class In, class Out>
void transpose(queue const& q, std::size_t rows, std::size_t columns, void const* from, void* to) {
  if (rows * columns == 0) return;
  dim3 const grid(unsigned(ceil_of(columns, tile)), unsigned(ceil_of(rows, tile)));
  launch(q, "transpose", transpose_kernel<In, Out>, grid, tile * tile_rows, rows, columns,
         static_cast<In const*>(from), static_cast<Out*>(to));
}

}  // namespace

void transpose_weights(queue const& q, std::size_t inputs, std::size_t outputs, void const* from,
                       bool from_half, void* to) {
  by_type(from_half, [&]<class In>(In) {
    by_type(q.half, [&]<class Out>(Out) { transpose<In, Out>(q, inputs, outputs, from, to); });
  });
}

void transpose_gradients(queue const& q, std::size_t inputs, std::size_t outputs, void const* from,
                         float* to) {
  by_type(q.half, [&]<class In>(In) { transpose<In, float>(q, outputs, inputs, from, to); });
}

}  // namespace edl::cuda_kernels
