// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

/// Sums down the columns of a matrix, and what is done with them. Threads lie across the columns, `lanes` of
/// them with N neighbours each. `down` rows of threads lie below each other. A block has a tile of the
/// columns and a part of the rows. A block that needs the sums adds those of the parts up for itself, always
/// in the same order.
namespace edl::cuda_kernels {

constexpr unsigned column_threads = 512, tile_columns = 64;

/// The first row of a part.
__host__ __device__ inline unsigned begin_of(unsigned rows, unsigned part, unsigned parts) {
  return unsigned(std::uint64_t(rows) * part / parts);
}

struct column_tiling {
  unsigned rows, columns;  ///< of the matrix
  unsigned lanes, down, tiles, parts;

  /// The tile's columns.
  __device__ unsigned first(int N) const { return blockIdx.y * lanes * unsigned(N); }
  __device__ unsigned count(int N) const {
    unsigned const most = lanes * unsigned(N), rest = columns - first(N);
    return rest < most ? rest : most;
  }

  __device__ std::size_t element(unsigned row, unsigned column) const {
    return std::size_t(row) * columns + column;
  }

  __device__ unsigned begin(unsigned part) const { return begin_of(rows, part, parts); }
};

/// One part where a thread has at most `few` rows then, which saves whoever needs the sums a second kernel.
inline column_tiling tile_of_columns(queue const& q, std::size_t rows, std::size_t columns, int N,
                                     unsigned few = 1) {
  constexpr unsigned work = 8;  // rows of a thread before one more part pays
  if (rows > 0x7fff'ffff) throw edl::error("cuda: more than 2^31 positions in one batch; take a smaller one");
  auto const packs = unsigned(ceil_of(columns, std::size_t(N)));
  column_tiling t;
  t.rows = unsigned(rows);
  t.columns = unsigned(columns);
  t.tiles = unsigned(ceil_of(columns, tile_columns));
  t.lanes = unsigned(ceil_of(packs, t.tiles));
  t.tiles = unsigned(ceil_of(packs, t.lanes));
  t.down = column_threads / t.lanes;
  auto const most =
      std::size_t(std::max(1u, std::min(unsigned(q.processors), 2 * unsigned(q.processors) / t.tiles)));
  t.parts = unsigned(std::clamp<std::size_t>(ceil_of(rows, std::size_t(t.down) * work), 1, most));
  if (rows <= std::size_t(t.down) * few) t.parts = 1;
  return t;
}

/// The most parts that any tiling of a matrix has.
inline std::size_t most_parts(queue const& q) { return std::size_t(std::max(q.processors, 1)); }

/// Where a thread lies.
struct column_place {
  unsigned lane, row, column;
  bool active;

  __device__ column_place(column_tiling const& t, int N)
      : lane(threadIdx.x % t.lanes),
        row(threadIdx.x / t.lanes),
        column((blockIdx.y * t.lanes + lane) * unsigned(N)),
        active(row < t.down && column < t.columns) {}
};

/// Joins what threads below each other have in `v` into that of the first row of them. It calls join(own,
/// count of rows behind the own, other, count of rows behind the other) for one element after the other. All
/// threads of the block call it; `shared` has room for M · column_threads.
template <int M>
__device__ __forceinline__ void sum_down(unsigned lanes, unsigned down, float (&v)[M], float* shared) {
  unsigned const row = threadIdx.x / lanes;
#pragma unroll
  for (int k = 0; k < M; ++k) shared[k * column_threads + threadIdx.x] = v[k];
  for (unsigned active = down; active > 1;) {
    unsigned const half = (active + 1) / 2;
    __syncthreads();
    if (row + half < active) {
#pragma unroll
      for (int k = 0; k < M; ++k) {
        v[k] += shared[k * column_threads + threadIdx.x + half * lanes];
        shared[k * column_threads + threadIdx.x] = v[k];
      }
    }
    active = half;
  }
}

/// The sums of all parts for the tile's columns, M arrays of them, where `partial` has them as
/// [part][array][column]. Thread i < count(N) has those of column first(N) + i.
template <int N, int M>
__device__ __forceinline__ void add_parts(column_tiling const& t, float const* __restrict__ partial,
                                          float (&sums)[M], float* shared) {
  unsigned const count = t.count(N), groups = column_threads / count;
  unsigned const column = threadIdx.x % count, group = threadIdx.x / count;
#pragma unroll
  for (int k = 0; k < M; ++k) sums[k] = 0;
  if (group < groups) {
#pragma unroll 4
    for (unsigned p = group; p < t.parts; p += groups)
#pragma unroll
      for (int k = 0; k < M; ++k)
        sums[k] += partial[(std::size_t(p) * M + unsigned(k)) * t.columns + t.first(N) + column];
  }
  sum_down<M>(count, groups, sums, shared);
}

}  // namespace edl::cuda_kernels
