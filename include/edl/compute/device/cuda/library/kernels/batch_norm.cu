// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/columns.cuh"
#include "edl/compute/device/cuda/library/kernels/norm.cuh"

namespace edl::cuda_kernels {
namespace {

// ---- Moments ----

/// Mean and sum of squared deviations of `count` numbers, which is joined with others by Chan's formula
/// (1979).
struct moments {
  float mean = 0, squares = 0;

  __device__ __forceinline__ void join(moments const& other, float own_count, float other_count) {
    if (other_count == 0) return;
    float const share = other_count / (own_count + other_count), off = other.mean - mean;
    mean += off * share;
    squares += other.squares + off * off * (own_count * share);
  }
};

/// As `sum_down`, for the moments of N columns.
template <int N>
__device__ __forceinline__ void join_down(unsigned lanes, unsigned down, moments (&m)[N], float& count,
                                          float* shared, float* counts) {
  unsigned const row = threadIdx.x / lanes;
  auto const keep = [&] {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      shared[2 * k * column_threads + threadIdx.x] = m[k].mean;
      shared[(2 * k + 1) * column_threads + threadIdx.x] = m[k].squares;
    }
    counts[threadIdx.x] = count;
  };
  keep();
  for (unsigned active = down; active > 1;) {
    unsigned const half = (active + 1) / 2;
    __syncthreads();
    if (row + half < active) {
      unsigned const other = threadIdx.x + half * lanes;
#pragma unroll
      for (int k = 0; k < N; ++k)
        m[k].join({shared[2 * k * column_threads + other], shared[(2 * k + 1) * column_threads + other]},
                  count, counts[other]);
      count += counts[other];
      keep();
    }
    active = half;
  }
}

/// Of a part of the rows: partial = [part][mean, squares][column], with means as they differ from the first
/// row. Numbers are summed as they differ from the thread's first: a large mean costs no digits of the
/// variance.
template <class T, int N>
__global__ void __launch_bounds__(column_threads, 2)
    moments_kernel(column_tiling const t, T const* __restrict__ x, float* __restrict__ partial) {
  __shared__ float shared[2 * N * column_threads], counts[column_threads];
  column_place const at(t, N);
  moments m[N];
  float count = 0;
  unsigned const end = t.begin(blockIdx.x + 1), first = t.begin(blockIdx.x) + at.row;
  if (at.active && first < end) {
    pack<N> const shift = load<N>(x + t.element(first, at.column));
    float sum[N] = {}, square[N] = {};
#pragma unroll 4
    for (unsigned r = first; r < end; r += t.down) {
      pack<N> const v = load<N>(x + t.element(r, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const off = v.lane[k] - shift.lane[k];
        sum[k] += off;
        square[k] = fmaf(off, off, square[k]);
      }
    }
    count = float((end - first + t.down - 1) / t.down);
    pack<N> const origin = load<N>(x + at.column);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float const off = sum[k] / count;
      m[k].mean = shift.lane[k] - origin.lane[k] + off;
      m[k].squares = square[k] - sum[k] * off;
    }
  }
  join_down<N>(t.lanes, t.down, m, count, shared, counts);
  if (!at.active || at.row != 0) return;
  float* const to = partial + std::size_t(blockIdx.x) * 2 * t.columns + at.column;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = m[k].mean;
    to[t.columns + unsigned(k)] = m[k].squares;
  }
}

/// Of all rows, as of the parts: thread i < count(N) has those of column first(N) + i.
template <int N>
__device__ __forceinline__ moments join_parts(column_tiling const& t, moments_in_parts const& of,
                                              float* shared, float* counts) {
  unsigned const columns = t.count(N), groups = column_threads / columns;
  unsigned const column = threadIdx.x % columns, group = threadIdx.x / columns;
  moments m[1];
  float count = 0;
  if (group < groups)
#pragma unroll 4
    for (unsigned p = group; p < of.parts; p += groups) {
      float const* const from = of.at + std::size_t(p) * 2 * t.columns + t.first(N) + column;
      float const size = of.counted
                             ? of.at[std::size_t(of.parts) * 2 * t.columns + p]
                             : float(begin_of(t.rows, p + 1, of.parts) - begin_of(t.rows, p, of.parts));
      m[0].join({from[0], from[t.columns]}, count, size);
      count += size;
    }
  join_down<1>(columns, groups, m, count, shared, counts);
  return m[0];
}

// ---- y ----

enum class statistics { batch, running, kept };

struct norm_variables {
  norm_parameters of_channel;
  float *running_mean, *running_variance, *kept;
  float momentum, epsilon;
  statistics source;
};

/// z = x · scale + offset of the tile's columns. The tile's first block writes what is remembered.
template <int N, class T>
__device__ __forceinline__ void find_scales(column_tiling const& t, norm_variables const& v,
                                            T const* __restrict__ x, moments_in_parts const& known,
                                            float* shared, float* counts, float* scale, float* offset) {
  moments m;
  if (v.source == statistics::batch) m = join_parts<N>(t, known, shared, counts);
  if (threadIdx.x < t.count(N)) {
    unsigned const k = t.first(N) + threadIdx.x, n = t.columns;
    bool const writes = blockIdx.x == 0;
    float mean, inverse;
    if (v.source == statistics::kept) {
      mean = v.kept[k];
      inverse = v.kept[n + k];
    } else {
      float variance;
      if (v.source == statistics::batch) {
        mean = m.mean + (known.counted ? 0 : load_one(x + k));
        variance = m.squares / float(t.rows);
        if (writes) {
          v.running_mean[k] = v.running_mean[k] * v.momentum + mean * (1 - v.momentum);
          v.running_variance[k] = v.running_variance[k] * v.momentum + variance * (1 - v.momentum);
        }
      } else {
        mean = v.running_mean[k];
        variance = v.running_variance[k];
      }
      inverse = 1 / sqrtf(variance + v.epsilon);
      if (writes) {
        v.kept[k] = mean;
        v.kept[n + k] = inverse;
      }
    }
    float const a = v.of_channel.scale(k) * inverse;
    scale[threadIdx.x] = a;
    offset[threadIdx.x] = v.of_channel.shift(k) - mean * a;
  }
  __syncthreads();
}

/// What a thread needs of a number for each of the tile's columns.
template <int N>
__device__ __forceinline__ void own_columns(column_place const& at, float const* of_tile, float (&own)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) own[k] = of_tile[at.lane * N + unsigned(k)];
}

template <class T, int N, activation F>
__global__ void __launch_bounds__(column_threads, 2)
    normalise_kernel(column_tiling const t, norm_variables const v, moments_in_parts const known,
                     T const* __restrict__ x, T const* __restrict__ more, T* __restrict__ y) {
  __shared__ float shared[2 * column_threads], counts[column_threads], scales[tile_columns + 8],
      offsets[tile_columns + 8];
  find_scales<N>(t, v, x, known, shared, counts, scales, offsets);
  column_place const at(t, N);
  if (!at.active) return;
  float scale[N], offset[N];
  own_columns<N>(at, scales, scale);
  own_columns<N>(at, offsets, offset);
  unsigned const stride = gridDim.x * t.down;
  for (unsigned r = blockIdx.x * t.down + at.row; r < t.rows; r += rows_at_once * stride) {
    array<T, N> in[rows_at_once], added[rows_at_once] = {};
#pragma unroll
    for (unsigned u = 0; u < rows_at_once; ++u) {
      std::size_t const i = t.element(nearest(r, u * stride, t.rows), at.column);
      in[u] = fetch<N>(x + i);
      if (more) added[u] = fetch<N>(more + i);
    }
#pragma unroll
    for (unsigned u = 0; u < rows_at_once; ++u) {
      if (r + u * stride >= t.rows) break;
      pack<N> z = widen(in[u]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        z.lane[k] = fmaf(z.lane[k], scale[k], offset[k]);
        if (more) z.lane[k] += widen(added[u]).lane[k];
        z.lane[k] = activate<F>(z.lane[k]);
      }
      store<N>(y + t.element(r + u * stride, at.column), z);
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    normalise_windows_kernel(column_tiling const t, norm_variables const v, bool relu, window_grid const g,
                             moments_in_parts const known, T const* __restrict__ x, T* __restrict__ y) {
  __shared__ float shared[2 * column_threads], counts[column_threads], scales[tile_columns + 8],
      offsets[tile_columns + 8];
  find_scales<N>(t, v, x, known, shared, counts, scales, offsets);
  column_place const at(t, N);
  if (!at.active) return;
  float scale[N], offset[N];
  own_columns<N>(at, scales, scale);
  own_columns<N>(at, offsets, offset);
  unsigned const stride = gridDim.x * t.down;
  for (unsigned item = blockIdx.x * t.down + at.row; item < g.items; item += stride) {
    auto const w = g(item);
    pack<N> most;
#pragma unroll
    for (int k = 0; k < N; ++k) most.lane[k] = relu ? 0 : -INFINITY;
    for_each_position<N>(w, g, t.columns, x, t.element(w.from, at.column),
                         [&](pack<N> const& in, std::size_t) {
#pragma unroll
                           for (int k = 0; k < N; ++k) {
                             float const z = fmaf(in.lane[k], scale[k], offset[k]);
                             most.lane[k] = z > most.lane[k] || z != z ? z : most.lane[k];  // a NaN stays
                           }
                         });
    store<N>(y + t.element(w.to, at.column), most);
  }
}

void normalise(queue const& q, norm_chain const& c, int batch, norm_variables const& v,
               moments_in_parts const& known, void const* x, void const* more, void* y) {
  std::size_t const rows = rows_of(c, batch);
  if (rows == 0) return;
  auto const work = [&]<class T, int N>() {
    column_tiling const t = tile_of_columns(q, rows, std::size_t(c.in.channels), N);
    auto const* const from = static_cast<T const*>(x);
    auto* const to = static_cast<T*>(y);
    if (c.window == 1) {
      by_activation(c.f, [&]<activation F>() {
        launch(q, "batch_norm", normalise_kernel<T, N, F>, grid_of(q, t, rows, 4), column_threads, t, v,
               known, from, static_cast<T const*>(more), to);
      });
    } else {
      window_grid const g(c, batch, false);
      launch(q, "batch_norm", normalise_windows_kernel<T, N>, grid_of(q, t, g.items, 1), column_threads, t, v,
             c.f == activation::relu, g, known, from, to);
    }
  };
  by_channels(q, c.in.channels, work, x, more, y);
}

}  // namespace

std::size_t moments_floats(queue const& q, std::size_t columns) {
  return most_parts(q) * 2 * (2 * columns + 1);
}

moments_in_parts find_moments(queue const& q, std::size_t rows, std::size_t columns, void const* x,
                              float* to) {
  moments_in_parts found{to};
  if (rows == 0) return found;
  by_channels(
      q, columns,
      [&]<class T, int N>() {
        column_tiling const t = tile_of_columns(q, rows, columns, N);
        found.parts = t.parts;
        launch(q, "moments", moments_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t,
               static_cast<T const*>(x), to);
      },
      x);
  return found;
}

std::size_t batch_norm_scratch(queue const& q, norm_chain const& c, int) {
  return most_parts(q) * 2 * std::size_t(c.in.channels);
}

void batch_norm_train(queue const& q, norm_chain const& c, int batch, float momentum, float epsilon,
                      void const* x, float const* gamma, float const* beta, void const* more,
                      float* running_mean, float* running_variance, void* y, float* kept,
                      moments_in_parts known, float* scratch) {
  if (!known.at) known = find_moments(q, rows_of(c, batch), std::size_t(c.in.channels), x, scratch);
  normalise(q, c, batch,
            {{gamma, beta, c.shift_gain},
             running_mean,
             running_variance,
             kept,
             momentum,
             epsilon,
             statistics::batch},
            known, x, more, y);
}

void batch_norm_evaluate(queue const& q, norm_chain const& c, int batch, float epsilon, void const* x,
                         float const* gamma, float const* beta, void const* more, float const* running_mean,
                         float const* running_variance, void* y, float* kept) {
  normalise(q, c, batch,
            {{gamma, beta, c.shift_gain},
             const_cast<float*>(running_mean),
             const_cast<float*>(running_variance),
             kept,
             0,
             epsilon,
             statistics::running},
            {}, x, more, y);
}

void batch_norm_recompute(queue const& q, norm_chain const& c, int batch, void const* x, float const* gamma,
                          float const* beta, float const* kept, void* y) {
  normalise(q, c, batch,
            {{gamma, beta, c.shift_gain}, nullptr, nullptr, const_cast<float*>(kept), 0, 0, statistics::kept},
            {}, x, nullptr, y);
}

}  // namespace edl::cuda_kernels
