// SPDX-License-Identifier: Apache-2.0
#include "edl/device/cuda/library/columns.cuh"
#include "edl/device/cuda/library/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

/// Rows that a thread has under way at a time.
constexpr unsigned rows_at_once = 2;

/// Row r + more, or r where that is none: all loads are done, so that they are under way together.
__device__ __forceinline__ unsigned nearest(unsigned r, unsigned more, unsigned rows) {
  return r + more < rows ? r + more : r;
}

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
        float const off = v.of[k] - shift.of[k];
        sum[k] += off;
        square[k] = fmaf(off, off, square[k]);
      }
    }
    count = float((end - first + t.down - 1) / t.down);
    pack<N> const origin = load<N>(x + at.column);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float const off = sum[k] / count;
      m[k].mean = shift.of[k] - origin.of[k] + off;
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
__device__ __forceinline__ moments join_parts(column_tiling const& t, float const* __restrict__ partial,
                                              float* shared, float* counts) {
  unsigned const columns = t.count(N), groups = column_threads / columns;
  unsigned const column = threadIdx.x % columns, group = threadIdx.x / columns;
  moments m[1];
  float count = 0;
  if (group < groups)
#pragma unroll 4
    for (unsigned p = group; p < t.parts; p += groups) {
      float const* const from = partial + std::size_t(p) * 2 * t.columns + t.first(N) + column;
      auto const size = float(t.begin(p + 1) - t.begin(p));
      m[0].join({from[0], from[t.columns]}, count, size);
      count += size;
    }
  join_down<1>(columns, groups, m, count, shared, counts);
  return m[0];
}

// ---- Windows ----

/// Rows of a matrix {samples · height · width, channels} that are windows of `size` × `size`; what fills none
/// is a window, too, where `all`. Divisions are of 32 bits.
struct window_grid {
  unsigned height, width;  // of a sample of x
  unsigned size;
  unsigned out_height, out_width;  // whole windows
  unsigned rows, columns;          // windows that are visited
  unsigned items;

  window_grid(norm_chain const& c, int batch, bool all)
      : height(unsigned(c.in.height)),
        width(unsigned(c.in.width)),
        size(unsigned(c.window)),
        out_height(height / size),
        out_width(width / size),
        rows(all ? unsigned(ceil_of(height, size)) : out_height),
        columns(all ? unsigned(ceil_of(width, size)) : out_width),
        items(unsigned(batch) * rows * columns) {}

  struct window {
    unsigned from;  // row of x of its first position
    unsigned to;    // row of y
    unsigned down, across;
    bool whole;
  };

  __device__ window operator()(unsigned item) const {
    unsigned const j = item % columns, above = item / columns, i = above % rows, sample = above / rows;
    window w;
    w.from = (sample * height + i * size) * width + j * size;
    w.to = (sample * out_height + i) * out_width + j;
    w.down = min(size, height - i * size);
    w.across = min(size, width - j * size);
    w.whole = w.down == size && w.across == size;
    return w;
  }
};

/// visit(x, at) for the positions of a window, of which `at` is the first's element.
template <int N, class T, class Visit>
__device__ __forceinline__ void for_each_position(window_grid::window const& w, window_grid const& g,
                                                  unsigned channels, T const* x, std::size_t at,
                                                  Visit&& visit) {
  for (unsigned i = 0; i < w.down; ++i)
    for (unsigned j = 0; j < w.across; ++j) {
      std::size_t const here = at + std::size_t(i * g.width + j) * channels;
      visit(load<N>(x + here), here);
    }
}

// ---- y ----

enum class statistics { batch, running, kept };

struct norm_variables {
  float const *gamma, *beta;
  float *running_mean, *running_variance, *kept;
  float momentum, epsilon;
  statistics of;
};

/// z = x · scale + offset of the tile's columns. The tile's first block writes what is remembered.
template <int N, class T>
__device__ __forceinline__ void find_scales(column_tiling const& t, norm_variables const& v,
                                            T const* __restrict__ x, float const* __restrict__ partial,
                                            float* shared, float* counts, float* scale, float* offset) {
  moments m;
  if (v.of == statistics::batch) m = join_parts<N>(t, partial, shared, counts);
  if (threadIdx.x < t.count(N)) {
    unsigned const k = t.first(N) + threadIdx.x, n = t.columns;
    bool const writes = blockIdx.x == 0;
    float mean, inverse;
    if (v.of == statistics::kept) {
      mean = v.kept[k];
      inverse = v.kept[n + k];
    } else {
      float variance;
      if (v.of == statistics::batch) {
        mean = m.mean + load_one(x + k);
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
    float const a = v.gamma[k] * inverse;
    scale[threadIdx.x] = a;
    offset[threadIdx.x] = v.beta[k] - mean * a;
  }
  __syncthreads();
}

template <class T, int N>
__global__ void __launch_bounds__(column_threads, 2)
    normalise_kernel(column_tiling const t, norm_variables const v, bool relu,
                     float const* __restrict__ partial, T const* __restrict__ x, T const* __restrict__ more,
                     T* __restrict__ y) {
  __shared__ float shared[2 * column_threads], counts[column_threads], scales[tile_columns + 8],
      offsets[tile_columns + 8];
  find_scales<N>(t, v, x, partial, shared, counts, scales, offsets);
  column_place const at(t, N);
  if (!at.active) return;
  float scale[N], offset[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    scale[k] = scales[at.lane * N + unsigned(k)];
    offset[k] = offsets[at.lane * N + unsigned(k)];
  }
  float const floor = relu ? 0 : -INFINITY;
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
        z.of[k] = fmaf(z.of[k], scale[k], offset[k]);
        if (more) z.of[k] += widen(added[u]).of[k];
        z.of[k] = z.of[k] < floor ? floor : z.of[k];
      }
      store<N>(y + t.element(r + u * stride, at.column), z);
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    normalise_windows_kernel(column_tiling const t, norm_variables const v, bool relu, window_grid const g,
                             float const* __restrict__ partial, T const* __restrict__ x, T* __restrict__ y) {
  __shared__ float shared[2 * column_threads], counts[column_threads], scales[tile_columns + 8],
      offsets[tile_columns + 8];
  find_scales<N>(t, v, x, partial, shared, counts, scales, offsets);
  column_place const at(t, N);
  if (!at.active) return;
  float scale[N], offset[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    scale[k] = scales[at.lane * N + unsigned(k)];
    offset[k] = offsets[at.lane * N + unsigned(k)];
  }
  unsigned const stride = gridDim.x * t.down;
  for (unsigned item = blockIdx.x * t.down + at.row; item < g.items; item += stride) {
    auto const w = g(item);
    pack<N> most;
#pragma unroll
    for (int k = 0; k < N; ++k) most.of[k] = relu ? 0 : -INFINITY;
    for_each_position<N>(w, g, t.columns, x, t.element(w.from, at.column),
                         [&](pack<N> const& in, std::size_t) {
#pragma unroll
                           for (int k = 0; k < N; ++k) {
                             float const z = fmaf(in.of[k], scale[k], offset[k]);
                             most.of[k] = z > most.of[k] || z != z ? z : most.of[k];  // a NaN stays
                           }
                         });
    store<N>(y + t.element(w.to, at.column), most);
  }
}

// ---- Gradients ----

struct norm_gradients {
  float const *gamma, *beta, *kept;
  bool relu;
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
      scale[k] = v.gamma[c] * v.kept[channels + c];
      offset[k] = v.beta[c] - mean[k] * scale[k];
    }
  }
};

/// partial = [part][Σ dz, Σ dz · (x − mean)][column]
template <class T, int N>
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
        bool const passes = !v.relu || fmaf(in.of[k], c.scale[k], c.offset[k]) > 0;
        float const dz = passes ? g.of[k] : 0;
        sums[k] += dz;
        sums[N + k] = fmaf(dz, in.of[k] - c.mean[k], sums[N + k]);
      }
    }
  }
  sum_down<2 * N>(t.lanes, t.down, sums, shared);
  if (!at.active || at.row != 0) return;
  float* const to = partial + std::size_t(blockIdx.x) * 2 * t.columns + at.column;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = sums[k];
    to[t.columns + unsigned(k)] = sums[N + k];
  }
}

/// The same, where y is the greatest of windows; `t` is of windows.
template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    sum_window_gradients_kernel(column_tiling const t, norm_gradients const v, window_grid const g,
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
      for (int k = 0; k < N; ++k) most.of[k] = -INFINITY;
      for_each_position<N>(w, g, t.columns, x, first, [&](pack<N> const& in, std::size_t) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float const z = fmaf(in.of[k], c.scale[k], c.offset[k]);
          where.of[k] = z > most.of[k] ? in.of[k] : where.of[k];
          most.of[k] = z > most.of[k] ? z : most.of[k];
        }
      });
      pack<N> const d = load<N>(dy + t.element(w.to, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = !v.relu || most.of[k] > 0 ? d.of[k] : 0;
        sums[k] += dz;
        sums[N + k] = fmaf(dz, where.of[k] - c.mean[k], sums[N + k]);
      }
    }
  }
  sum_down<2 * N>(t.lanes, t.down, sums, shared);
  if (!at.active || at.row != 0) return;
  float* const to = partial + std::size_t(blockIdx.x) * 2 * t.columns + at.column;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = sums[k];
    to[t.columns + unsigned(k)] = sums[N + k];
  }
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
    float const mean = v.kept[k], inverse = v.kept[t.columns + k], a = v.gamma[k] * inverse;
    float const dbeta = sums[0], dgamma = sums[1] * inverse;
    if (blockIdx.x == 0) {
      r.dbeta[k] = dbeta;
      r.dgamma[k] = dgamma;
    }
    // dx = a · (dz − Σ dz / N − x̂ · Σ (dz · x̂) / N)
    float const b = r.through ? -a * dgamma * inverse * r.share : 0;
    s.of_dz[i] = a;
    s.of_x[i] = b;
    s.rest[i] = r.through ? -a * dbeta * r.share - b * mean : 0;
    s.offset[i] = v.beta[k] - mean * a;
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

template <class T, int N>
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
        float const dz = !v.relu || c.z(k, in.of[k]) > 0 ? g.of[k] : 0;
        d.of[k] = c.dx(k, dz, in.of[k], r.after_relu);
      }
      store<N>(dx + t.element(first + u * stride, at.column), d);
    }
  }
}

/// The same, where y is the greatest of windows: `parts` is the tiling of the sums, `g` visits what fills no
/// window, too, for that has no dz.
template <class T, int N>
__global__ void __launch_bounds__(column_threads, 1)
    write_window_gradients_kernel(column_tiling const t, norm_gradients const v, norm_results const r,
                                  window_grid const g, float const* __restrict__ partial,
                                  T const* __restrict__ x, T const* __restrict__ dy, T* __restrict__ dx) {
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
          float const z = c.z(k, in.of[k]);
          most[k] = z > most[k] ? z : most[k];
        }
      });
      left = load<N>(dy + t.element(w.to, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) left.of[k] = !v.relu || most[k] > 0 ? left.of[k] : 0;
    }
    for_each_position<N>(w, g, t.columns, x, first, [&](pack<N> const& in, std::size_t here) {
      pack<N> out;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float const dz = c.z(k, in.of[k]) >= most[k] ? left.of[k] : 0;
        left.of[k] -= dz;
        out.of[k] = c.dx(k, dz, in.of[k], r.after_relu);
      }
      store<N>(dx + here, out);
    });
  }
}

// ---- Launches ----

/// Blocks that share `items` rows of each tile.
dim3 grid_of(queue const& q, column_tiling const& t, std::size_t items, unsigned per_thread) {
  std::size_t const most = std::max<std::size_t>(1, 2 * std::size_t(q.processors) / t.tiles);
  return dim3(unsigned(std::clamp<std::size_t>(ceil_of(items, std::size_t(t.down) * per_thread), 1, most)),
              t.tiles);
}

std::size_t rows_of(norm_chain const& c, int batch) {
  return std::size_t(batch) * std::size_t(c.in.height) * std::size_t(c.in.width);
}

/// work.template operator()<T, N>() as activations are in memory, and as they are aligned.
template <class Work, class... Pointers>
void by_channels(queue const& q, norm_chain const& c, Work&& work, Pointers... pointers) {
  by_type(q.half, [&]<class T>(T) {
    if (c.in.channels % wide<T> == 0 && aligned(16, pointers...))
      work.template operator()<T, wide<T>>();
    else
      work.template operator()<T, 1>();
  });
}

void normalise(queue const& q, norm_chain const& c, int batch, norm_variables const& v, void const* x,
               void const* more, void* y, float* scratch) {
  std::size_t const rows = rows_of(c, batch);
  if (rows == 0) return;
  auto const work = [&]<class T, int N>() {
    column_tiling const t = tile_of_columns(q, rows, std::size_t(c.in.channels), N);
    auto const* const from = static_cast<T const*>(x);
    auto* const to = static_cast<T*>(y);
    if (v.of == statistics::batch)
      launch(q, "batch_norm", moments_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t, from, scratch);
    if (c.window == 1) {
      launch(q, "batch_norm", normalise_kernel<T, N>, grid_of(q, t, rows, 4), column_threads, t, v, c.relu,
             scratch, from, static_cast<T const*>(more), to);
    } else {
      window_grid const g(c, batch, false);
      launch(q, "batch_norm", normalise_windows_kernel<T, N>, grid_of(q, t, g.items, 1), column_threads, t, v,
             c.relu, g, scratch, from, to);
    }
  };
  by_channels(q, c, work, x, more, y);
}

}  // namespace

std::size_t batch_norm_scratch(queue const& q, norm_chain const& c, int) {
  return most_parts(q) * 2 * std::size_t(c.in.channels);
}

void batch_norm_train(queue const& q, norm_chain const& c, int batch, float momentum, float epsilon,
                      void const* x, float const* gamma, float const* beta, void const* more,
                      float* running_mean, float* running_variance, void* y, float* kept, float* scratch) {
  normalise(q, c, batch,
            {gamma, beta, running_mean, running_variance, kept, momentum, epsilon, statistics::batch}, x,
            more, y, scratch);
}

void batch_norm_evaluate(queue const& q, norm_chain const& c, int batch, float epsilon, void const* x,
                         float const* gamma, float const* beta, void const* more, float const* running_mean,
                         float const* running_variance, void* y, float* kept) {
  normalise(q, c, batch,
            {gamma, beta, const_cast<float*>(running_mean), const_cast<float*>(running_variance), kept, 0,
             epsilon, statistics::running},
            x, more, y, nullptr);
}

void batch_norm_again(queue const& q, norm_chain const& c, int batch, void const* x, float const* gamma,
                      float const* beta, float const* kept, void* y) {
  normalise(q, c, batch, {gamma, beta, nullptr, nullptr, const_cast<float*>(kept), 0, 0, statistics::kept}, x,
            nullptr, y, nullptr);
}

void batch_norm_backward(queue const& q, norm_chain const& c, int batch, bool through, void const* x,
                         float const* gamma, float const* beta, void const* dy, float const* kept, void* dx,
                         float* dgamma, float* dbeta, float* scratch) {
  std::size_t const rows = rows_of(c, batch);
  if (rows == 0) return;
  norm_gradients const v{gamma, beta, kept, c.relu};
  norm_results const r{dgamma, dbeta, through, c.after_relu, 1 / float(rows)};
  auto const work = [&]<class T, int N>() {
    auto const *const from = static_cast<T const*>(x), *const out = static_cast<T const*>(dy);
    auto* const to = static_cast<T*>(dx);
    auto const channels = std::size_t(c.in.channels);
    auto const only_sums = [&](column_tiling const& t) { return dim3(1, t.tiles); };
    if (c.window == 1) {
      column_tiling const t = tile_of_columns(q, rows, channels, N);
      launch(q, "batch_norm", sum_gradients_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t, v, from,
             out, scratch);
      launch(q, "batch_norm", write_gradients_kernel<T, N>, dx ? grid_of(q, t, rows, 4) : only_sums(t),
             column_threads, t, v, r, scratch, from, out, to);
    } else {
      window_grid const whole(c, batch, false), all(c, batch, true);
      column_tiling const t = tile_of_columns(q, whole.items, channels, N);
      launch(q, "batch_norm", sum_window_gradients_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t, v,
             whole, from, out, scratch);
      launch(q, "batch_norm", write_window_gradients_kernel<T, N>,
             dx ? grid_of(q, t, all.items, 1) : only_sums(t), column_threads, t, v, r, all, scratch, from,
             out, to);
    }
  };
  by_channels(q, c, work, x, dy, dx);
}

}  // namespace edl::cuda_kernels
