// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned pool_threads = 256;

/// A pooling in 32 bits, and the packs of channels of one position.
struct pool_grid {
  int in_height, in_width, out_height, out_width, channels, packs;
  int window_height, window_width, stride_height, stride_width, above, left;
  unsigned items;  // threads' worth of work: packs of y, or of x

  pool_grid(pool_geometry const& g, int batch, int N, bool of_x)
      : in_height(g.in.height),
        in_width(g.in.width),
        out_height(g.out.height),
        out_width(g.out.width),
        channels(g.in.channels),
        packs(channels / N),
        window_height(g.window.height),
        window_width(g.window.width),
        stride_height(g.stride.height),
        stride_width(g.stride.width),
        above(g.before.height),
        left(g.before.width) {
    std::size_t const n = std::size_t(batch) * (of_x ? g.in.size() : g.out.size()) / std::size_t(N);
    if (n > 0x7fff'ffff)
      throw edl::error("cuda: more than 2^31 elements to pool in one batch; take a smaller one");
    items = unsigned(n);
  }

  /// Where one pack lies in a batch of `height` × `width` positions.
  struct place {
    int sample, row, column, channel;
  };
  __device__ place place_of(unsigned item, int height, int width, int N) const {
    place p;
    unsigned const across = item / unsigned(packs);
    p.channel = int(item - across * unsigned(packs)) * N;
    unsigned const down = across / unsigned(width);
    p.column = int(across - down * unsigned(width));
    unsigned const sample = down / unsigned(height);
    p.row = int(down - sample * unsigned(height));
    p.sample = int(sample);
    return p;
  }

  /// What of a window lies inside the sample.
  struct window {
    int top, bottom, left, right;
    __device__ int size() const { return (bottom - top) * (right - left); }
  };
  __device__ window window_of(int row, int column) const {
    int const top = row * stride_height - above, first = column * stride_width - left;
    return {max(top, 0), min(top + window_height, in_height), max(first, 0),
            min(first + window_width, in_width)};
  }

  /// The windows that a position of x lies in.
  __device__ window windows_over(int row, int column) const {
    int const down = row + above, across = column + left;
    return {down < window_height ? 0 : (down - window_height) / stride_height + 1,
            min(down / stride_height + 1, out_height),
            across < window_width ? 0 : (across - window_width) / stride_width + 1,
            min(across / stride_width + 1, out_width)};
  }

  __device__ std::size_t in(int sample, int row, int column, int channel) const {
    return ((std::size_t(sample) * in_height + row) * in_width + column) * channels + channel;
  }
  __device__ std::size_t out(int sample, int row, int column, int channel) const {
    return ((std::size_t(sample) * out_height + row) * out_width + column) * channels + channel;
  }
};

template <class T, int N>
__global__ void __launch_bounds__(pool_threads, 4)
    max_pool_kernel(pool_grid const g, T const* __restrict__ x, T* __restrict__ y) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < g.items; i += gridDim.x * blockDim.x) {
    auto const p = g.place_of(i, g.out_height, g.out_width, N);
    auto const w = g.window_of(p.row, p.column);
    pack<N> most;
#pragma unroll
    for (int k = 0; k < N; ++k) most.lane[k] = -INFINITY;
    for (int a = w.top; a < w.bottom; ++a)
      for (int b = w.left; b < w.right; ++b) {
        pack<N> const here = load<N>(x + g.in(p.sample, a, b, p.channel));
#pragma unroll
        for (int k = 0; k < N; ++k)
          most.lane[k] =
              here.lane[k] > most.lane[k] || here.lane[k] != here.lane[k] ? here.lane[k] : most.lane[k];
      }
    store<N>(y + std::size_t(i) * N, most);
  }
}

/// The same number if it is rounded to bfloat16.
__device__ __forceinline__ bool alike(float a, float b) {
  return from_bfloat16(to_bfloat16(a)) == from_bfloat16(to_bfloat16(b));
}

/// Each element of x asks the windows over it whether it is their first of equal greatest. Since the forward
/// pass x or y alone may have been rounded to bfloat16 (`storage::bfloat16`). So y only says which elements
/// cannot be the greatest, and the others are compared with the rest of x under the window.
template <class T, int N>
__global__ void __launch_bounds__(pool_threads, 4)
    max_pool_gradient_kernel(pool_grid const g, T const* __restrict__ x, T const* __restrict__ y,
                             T const* __restrict__ dy, T* __restrict__ dx) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < g.items; i += gridDim.x * blockDim.x) {
    auto const p = g.place_of(i, g.in_height, g.in_width, N);
    auto const over = g.windows_over(p.row, p.column);
    pack<N> const own = load<N>(x + std::size_t(i) * N);
    pack<N> sum = {};
    for (int a = over.top; a < over.bottom; ++a)
      for (int b = over.left; b < over.right; ++b) {
        std::size_t const at = g.out(p.sample, a, b, p.channel);
        pack<N> const most = load<N>(y + at);
        unsigned first = 0;  // one bit for each of the pack
#pragma unroll
        for (int k = 0; k < N; ++k) first |= unsigned(alike(own.lane[k], most.lane[k])) << k;
        auto const w = g.window_of(a, b);
        for (int r = w.top; r < w.bottom && first; ++r)
          for (int c = w.left; c < w.right && first; ++c) {
            bool const before = r < p.row || (r == p.row && c < p.column);
            pack<N> const other = load<N>(x + g.in(p.sample, r, c, p.channel));
#pragma unroll
            for (int k = 0; k < N; ++k)
              first &= ~(unsigned(before ? other.lane[k] >= own.lane[k] : other.lane[k] > own.lane[k]) << k);
          }
        if (!first) continue;
        pack<N> const d = load<N>(dy + at);
#pragma unroll
        for (int k = 0; k < N; ++k) sum.lane[k] += first >> k & 1 ? d.lane[k] : 0;
      }
    store<N>(dx + std::size_t(i) * N, sum);
  }
}

template <class T, int N>
__global__ void __launch_bounds__(pool_threads, 4)
    average_pool_kernel(pool_grid const g, T const* __restrict__ x, T* __restrict__ y) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < g.items; i += gridDim.x * blockDim.x) {
    auto const p = g.place_of(i, g.out_height, g.out_width, N);
    auto const w = g.window_of(p.row, p.column);
    pack<N> mean = {};
    for (int a = w.top; a < w.bottom; ++a)
      for (int b = w.left; b < w.right; ++b) {
        pack<N> const here = load<N>(x + g.in(p.sample, a, b, p.channel));
#pragma unroll
        for (int k = 0; k < N; ++k) mean.lane[k] += here.lane[k];
      }
    float const share = 1 / float(w.size());
#pragma unroll
    for (int k = 0; k < N; ++k) mean.lane[k] *= share;
    store<N>(y + std::size_t(i) * N, mean);
  }
}

template <class T, int N>
__global__ void __launch_bounds__(pool_threads, 4)
    average_pool_gradient_kernel(pool_grid const g, T const* __restrict__ dy, T* __restrict__ dx) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < g.items; i += gridDim.x * blockDim.x) {
    auto const p = g.place_of(i, g.in_height, g.in_width, N);
    auto const over = g.windows_over(p.row, p.column);
    pack<N> sum = {};
    for (int a = over.top; a < over.bottom; ++a)
      for (int b = over.left; b < over.right; ++b) {
        float const share = 1 / float(g.window_of(a, b).size());
        pack<N> const d = load<N>(dy + g.out(p.sample, a, b, p.channel));
#pragma unroll
        for (int k = 0; k < N; ++k) sum.lane[k] = fmaf(d.lane[k], share, sum.lane[k]);
      }
    store<N>(dx + std::size_t(i) * N, sum);
  }
}

dim3 grid_of(queue const& q, pool_grid const& g) {
  return dim3(unsigned(std::min(ceil_of(g.items, pool_threads), std::size_t(q.processors) * 8)));
}

}  // namespace

void max_pool_forward(queue const& q, pool_geometry const& g, int batch, void const* x, void* y) {
  auto const work = [&]<class T, int N>() {
    pool_grid const p(g, batch, N, false);
    if (p.items == 0) return;
    launch(q, "max_pool", max_pool_kernel<T, N>, grid_of(q, p), pool_threads, p, static_cast<T const*>(x),
           static_cast<T*>(y));
  };
  by_channels(q, g.in.channels, work, x, y);
}

void max_pool_backward(queue const& q, pool_geometry const& g, int batch, void const* x, void const* y,
                       void const* dy, void* dx) {
  auto const work = [&]<class T, int N>() {
    pool_grid const p(g, batch, N, true);
    if (p.items == 0) return;
    launch(q, "max_pool", max_pool_gradient_kernel<T, N>, grid_of(q, p), pool_threads, p,
           static_cast<T const*>(x), static_cast<T const*>(y), static_cast<T const*>(dy),
           static_cast<T*>(dx));
  };
  by_channels(q, g.in.channels, work, x, y, dy, dx);
}

void average_pool_forward(queue const& q, pool_geometry const& g, int batch, void const* x, void* y) {
  auto const work = [&]<class T, int N>() {
    pool_grid const p(g, batch, N, false);
    if (p.items == 0) return;
    launch(q, "average_pool", average_pool_kernel<T, N>, grid_of(q, p), pool_threads, p,
           static_cast<T const*>(x), static_cast<T*>(y));
  };
  by_channels(q, g.in.channels, work, x, y);
}

void average_pool_backward(queue const& q, pool_geometry const& g, int batch, void const* dy, void* dx) {
  auto const work = [&]<class T, int N>() {
    pool_grid const p(g, batch, N, true);
    if (p.items == 0) return;
    launch(q, "average_pool", average_pool_gradient_kernel<T, N>, grid_of(q, p), pool_threads, p,
           static_cast<T const*>(dy), static_cast<T*>(dx));
  };
  by_channels(q, g.in.channels, work, dy, dx);
}

}  // namespace edl::cuda_kernels
