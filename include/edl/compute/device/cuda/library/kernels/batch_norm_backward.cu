// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/columns.cuh"
#include "edl/compute/device/cuda/library/kernels/norm.cuh"

namespace edl::cuda_kernels {
namespace {

struct norm_gradients {
  norm_parameters of_channel;
  float const* kept;
};

/// What a thread needs of its columns: z = x · scale + offset, as it was computed for y.
template <int N>
struct column_scales {
  float scale[N], offset[N], mean[N];

  __device__ __forceinline__ column_scales(norm_gradients const& v, unsigned channels, unsigned column) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      unsigned const c = column + unsigned(k);
      mean[k] = v.kept[c];
      scale[k] = v.of_channel.scale(c) * v.kept[channels + c];
      offset[k] = v.of_channel.shift(c) - mean[k] * scale[k];
    }
  }
};

/// Σ dz and Σ dz · (x − mean) of the block's rows are its part of `partial`: [part][which sum][column].
template <int N>
__device__ __forceinline__ void keep_sums(column_tiling const& t, column_place const& at,
                                          float (&sums)[2 * N], float* shared, float* __restrict__ partial) {
  sum_down<2 * N>(t.lanes, t.down, sums, shared);
  if (!at.active || at.row != 0) return;
  float* const to = partial + std::size_t(blockIdx.x) * 2 * t.columns + at.column;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = sums[k];
    to[t.columns + unsigned(k)] = sums[N + k];
  }
}

/// partial = [part][Σ dz, Σ dz · (x − mean)][column]
template <class T, int N, activation F>
__global__ void __launch_bounds__(column_threads, 2)
    sum_gradients_kernel(column_tiling const t, norm_gradients const v, T const* __restrict__ x,
                         T const* __restrict__ dy, float* __restrict__ partial) {
  __shared__ float shared[2 * N * column_threads];
  column_place const at(t, N);
  float sums[2 * N] = {};
  if (at.active) {
    column_scales<N> const c(v, t.columns, at.column);
    unsigned const end = t.begin(blockIdx.x + 1);
#pragma unroll 2
    for (unsigned r = t.begin(blockIdx.x) + at.row; r < end; r += t.down) {
      pack<N> const in = load<N>(x + t.element(r, at.column)), g = load<N>(dy + t.element(r, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = before<F>(fmaf(in.lane[k], c.scale[k], c.offset[k]), g.lane[k]);
        sums[k] += dz;
        sums[N + k] = fmaf(dz, in.lane[k] - c.mean[k], sums[N + k]);
      }
    }
  }
  keep_sums<N>(t, at, sums, shared, partial);
}

/// The same, where y is the greatest of windows; `t` is of windows.
template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    sum_window_gradients_kernel(column_tiling const t, norm_gradients const v, bool relu, window_grid const g,
                                T const* __restrict__ x, T const* __restrict__ dy,
                                float* __restrict__ partial) {
  __shared__ float shared[2 * N * column_threads];
  column_place const at(t, N);
  float sums[2 * N] = {};
  if (at.active) {
    column_scales<N> const c(v, t.columns, at.column);
    unsigned const end = t.begin(blockIdx.x + 1);
    for (unsigned item = t.begin(blockIdx.x) + at.row; item < end; item += t.down) {
      auto const w = g(item);
      std::size_t const first = t.element(w.from, at.column);
      pack<N> most, where = load<N>(x + first);
#pragma unroll
      for (int k = 0; k < N; ++k) most.lane[k] = -INFINITY;
      for_each_position<N>(w, g, t.columns, x, first, [&](pack<N> const& in, std::size_t) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float const z = fmaf(in.lane[k], c.scale[k], c.offset[k]);
          where.lane[k] = z > most.lane[k] ? in.lane[k] : where.lane[k];
          most.lane[k] = z > most.lane[k] ? z : most.lane[k];
        }
      });
      pack<N> const d = load<N>(dy + t.element(w.to, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = !relu || most.lane[k] > 0 ? d.lane[k] : 0;
        sums[k] += dz;
        sums[N + k] = fmaf(dz, where.lane[k] - c.mean[k], sums[N + k]);
      }
    }
  }
  keep_sums<N>(t, at, sums, shared, partial);
}

/// dx = dz · of_dz + x · of_x + rest
struct gradient_scales {
  float of_dz[tile_columns + 8], of_x[tile_columns + 8], rest[tile_columns + 8], offset[tile_columns + 8];
};

struct norm_results {
  float *dgamma, *dbeta;
  bool through, after_relu;
  float share;  // 1 / numbers of a channel
};

template <int N>
__device__ __forceinline__ void find_gradient_scales(column_tiling const& t, norm_gradients const& v,
                                                     norm_results const& r, float const* __restrict__ partial,
                                                     float* shared, gradient_scales& s) {
  float sums[2];
  add_parts<N, 2>(t, partial, sums, shared);
  if (threadIdx.x < t.count(N)) {
    unsigned const k = t.first(N) + threadIdx.x, i = threadIdx.x;
    float const mean = v.kept[k], inverse = v.kept[t.columns + k], a = v.of_channel.scale(k) * inverse;
    float const sum = sums[0], product = sums[1] * inverse;
    if (blockIdx.x == 0) {
      r.dbeta[k] = v.of_channel.shift_gain * sum;
      if (r.dgamma) r.dgamma[k] = product;
    }
    // dx = a · (dz − Σ dz / N − x̂ · Σ (dz · x̂) / N)
    float const b = r.through ? -a * product * inverse * r.share : 0;
    s.of_dz[i] = a;
    s.of_x[i] = b;
    s.rest[i] = r.through ? -a * sum * r.share - b * mean : 0;
    s.offset[i] = v.of_channel.shift(k) - mean * a;
  }
  __syncthreads();
}

/// `gradient_scales` of a thread's columns.
template <int N>
struct own_gradient_scales {
  float of_dz[N], of_x[N], rest[N], offset[N];

  __device__ __forceinline__ own_gradient_scales(gradient_scales const& s, unsigned lane) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      unsigned const i = lane * N + unsigned(k);
      of_dz[k] = s.of_dz[i];
      of_x[k] = s.of_x[i];
      rest[k] = s.rest[i];
      offset[k] = s.offset[i];
    }
  }

  /// As it was computed for y.
  __device__ __forceinline__ float z(int k, float in) const { return fmaf(in, of_dz[k], offset[k]); }

  __device__ __forceinline__ float dx(int k, float dz, float in, bool after_relu) const {
    float const d = fmaf(dz, of_dz[k], fmaf(in, of_x[k], rest[k]));
    return after_relu && !(in > 0) ? 0 : d;
  }
};

template <class T, int N, activation F>
__global__ void __launch_bounds__(column_threads, 2)
    write_gradients_kernel(column_tiling const t, norm_gradients const v, norm_results const r,
                           float const* __restrict__ partial, T const* __restrict__ x,
                           T const* __restrict__ dy, T* __restrict__ dx) {
  __shared__ float shared[2 * column_threads];
  __shared__ gradient_scales scales;
  find_gradient_scales<N>(t, v, r, partial, shared, scales);
  column_place const at(t, N);
  if (!dx || !at.active) return;
  own_gradient_scales<N> const c(scales, at.lane);
  unsigned const stride = gridDim.x * t.down;
  for (unsigned first = blockIdx.x * t.down + at.row; first < t.rows; first += rows_at_once * stride) {
    array<T, N> ins[rows_at_once], outs[rows_at_once];
#pragma unroll
    for (unsigned u = 0; u < rows_at_once; ++u) {
      std::size_t const i = t.element(nearest(first, u * stride, t.rows), at.column);
      ins[u] = fetch<N>(x + i);
      outs[u] = fetch<N>(dy + i);
    }
#pragma unroll
    for (unsigned u = 0; u < rows_at_once; ++u) {
      if (first + u * stride >= t.rows) break;
      pack<N> const in = widen(ins[u]), g = widen(outs[u]);
      pack<N> d;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = before<F>(c.z(k, in.lane[k]), g.lane[k]);
        d.lane[k] = c.dx(k, dz, in.lane[k], r.after_relu);
      }
      store<N>(dx + t.element(first + u * stride, at.column), d);
    }
  }
}

/// The same, where y is the greatest of windows. `parts` is the tiling of the sums. `g` visits what fills no
/// window, too, for that has no dz.
template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    write_window_gradients_kernel(column_tiling const t, norm_gradients const v, bool relu,
                                  norm_results const r, window_grid const g,
                                  float const* __restrict__ partial, T const* __restrict__ x,
                                  T const* __restrict__ dy, T* __restrict__ dx) {
  __shared__ float shared[2 * column_threads];
  __shared__ gradient_scales scales;
  find_gradient_scales<N>(t, v, r, partial, shared, scales);
  column_place const at(t, N);
  if (!dx || !at.active) return;
  own_gradient_scales<N> const c(scales, at.lane);
  unsigned const stride = gridDim.x * t.down;
  for (unsigned item = blockIdx.x * t.down + at.row; item < g.items; item += stride) {
    auto const w = g(item);
    std::size_t const first = t.element(w.from, at.column);
    float most[N];
    pack<N> left = {};  // taken by the first of equal greatest
#pragma unroll
    for (int k = 0; k < N; ++k) most[k] = -INFINITY;
    if (w.whole) {
      for_each_position<N>(w, g, t.columns, x, first, [&](pack<N> const& in, std::size_t) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float const z = c.z(k, in.lane[k]);
          most[k] = z > most[k] ? z : most[k];
        }
      });
      left = load<N>(dy + t.element(w.to, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) left.lane[k] = !relu || most[k] > 0 ? left.lane[k] : 0;
    }
    for_each_position<N>(w, g, t.columns, x, first, [&](pack<N> const& in, std::size_t here) {
      pack<N> out;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = c.z(k, in.lane[k]) >= most[k] ? left.lane[k] : 0;
        left.lane[k] -= dz;
        out.lane[k] = c.dx(k, dz, in.lane[k], r.after_relu);
      }
      store<N>(dx + here, out);
    });
  }
}

}  // namespace

void batch_norm_backward(queue const& q, norm_chain const& c, int batch, bool through, void const* x,
                         float const* gamma, float const* beta, void const* dy, float const* kept, void* dx,
                         float* dgamma, float* dbeta, float* scratch) {
  std::size_t const rows = rows_of(c, batch);
  if (rows == 0) return;
  norm_gradients const v{{gamma, beta, c.shift_gain}, kept};
  bool const relu = c.f == activation::relu;
  norm_results const r{dgamma, dbeta, through, c.after_relu, 1 / float(rows)};
  auto const work = [&]<class T, int N>() {
    auto const *const from = static_cast<T const*>(x), *const out = static_cast<T const*>(dy);
    auto* const to = static_cast<T*>(dx);
    auto const channels = std::size_t(c.in.channels);
    auto const only_sums = [&](column_tiling const& t) { return dim3(1, t.tiles); };
    if (c.window == 1) {
      by_activation(c.f, [&]<activation F>() {
        constexpr int M = curved(F) ? std::min(N, 4) : N;  // more slopes at a time spill
        column_tiling const t = tile_of_columns(q, rows, channels, M);
        launch(q, "batch_norm", sum_gradients_kernel<T, M, F>, dim3(t.parts, t.tiles), column_threads, t, v,
               from, out, scratch);
        launch(q, "batch_norm", write_gradients_kernel<T, M, F>, dx ? grid_of(q, t, rows, 4) : only_sums(t),
               column_threads, t, v, r, scratch, from, out, to);
      });
    } else {
      window_grid const whole(c, batch, false), all(c, batch, true);
      column_tiling const t = tile_of_columns(q, whole.items, channels, N);
      launch(q, "batch_norm", sum_window_gradients_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t, v,
             relu, whole, from, out, scratch);
      launch(q, "batch_norm", write_window_gradients_kernel<T, N>,
             dx ? grid_of(q, t, all.items, 1) : only_sums(t), column_threads, t, v, relu, r, all, scratch,
             from, out, to);
    }
  };
  by_channels(q, c.in.channels, work, x, dy, dx);
}

}  // namespace edl::cuda_kernels
