// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/geometry.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr int lanes = 32, slices = 8;  // of a block that sums gradients of a kernel

/// A NaN stays.
__device__ float finish(float x, bool relu) { return relu && x < 0 ? 0.0f : x; }

__device__ std::size_t first() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t step() { return std::size_t(gridDim.x) * blockDim.x; }

/// Enough blocks for an element a thread, or to fill the GPU some times over.
dim3 blocks(queue const& q, std::size_t elements) {
  return dim3(unsigned(
      std::clamp<std::size_t>(ceil_of(elements, element_threads), 1, std::size_t(q.processors) * 32)));
}

/// The remainder is taken of 32 bits where they do, which is several times as fast.
template <class T, int N, class Index>
__global__ void __launch_bounds__(element_threads)
    finish_rows_kernel(Index packs, Index packs_of_a_row, bool relu, float const* bias, T* y) {
  for (std::size_t i = first(); i < packs; i += step()) {
    pack<N> p = load<N>(y + i * N);
    Index const column = Index(i) % packs_of_a_row * N;
#pragma unroll
    for (int j = 0; j < N; ++j) p.lane[j] = finish(p.lane[j] + (bias ? bias[column + j] : 0.0f), relu);
    store<N>(y + i * N, p);
  }
}

template <class T, int N>
void finish_packs(queue const& q, std::size_t rows, std::size_t columns, activation f, float const* bias,
                  T* y) {
  std::size_t const row = columns / N, packs = rows * row;
  bool const relu = f == activation::relu;
  if (packs <= UINT32_MAX)
    launch(q, "biases", finish_rows_kernel<T, N, std::uint32_t>, blocks(q, packs), element_threads, packs,
           row, relu, bias, y);
  else
    launch(q, "biases", finish_rows_kernel<T, N, std::uint64_t>, blocks(q, packs), element_threads, packs,
           row, relu, bias, y);
}

template <class T>
__global__ void place_kernel(std::size_t elements, shape from, shape to, int down, int right, T const* x,
                             T* y) {
  for (std::size_t i = first(); i < elements; i += step()) {
    int const channel = int(i % std::size_t(to.channels));
    std::size_t const position = i / std::size_t(to.channels), above = position / std::size_t(to.width);
    int const column = int(position % std::size_t(to.width)) - right;
    int const row = int(above % std::size_t(to.height)) - down;
    std::size_t const sample = above / std::size_t(to.height);
    bool const inside = row >= 0 && row < from.height && column >= 0 && column < from.width;
    y[i] = inside ? x[((sample * std::size_t(from.height) + std::size_t(row)) * std::size_t(from.width) +
                       std::size_t(column)) *
                          std::size_t(from.channels) +
                      std::size_t(channel)]
                  : T(0);
  }
}

template <class T>
__global__ void forward_kernel(conv_geometry g, std::size_t elements, bool relu, T const* x,
                               float const* kernel, float const* bias, T* y) {
  int const own = g.in.channels / g.groups, filters = g.out.channels / g.groups;
  for (std::size_t i = first(); i < elements; i += step()) {
    int const out = int(i % std::size_t(g.out.channels));
    std::size_t const position = i / std::size_t(g.out.channels), above = position / std::size_t(g.out.width);
    int const left = int(position % std::size_t(g.out.width)) * g.stride.width - g.before.width;
    int const top = int(above % std::size_t(g.out.height)) * g.stride.height - g.before.height;
    std::size_t const sample = above / std::size_t(g.out.height);
    float sum = 0;
    for (int a = 0; a < g.kernel.height; ++a)
      for (int b = 0; b < g.kernel.width; ++b) {
        int const row = top + a, column = left + b;
        if (row < 0 || row >= g.in.height || column < 0 || column >= g.in.width) continue;
        for (int c = 0; c < own; ++c)
          sum += load_one(&x[at(g.in, sample, row, column, out / filters * own + c)]) *
                 factor<T>(kernel[at(g, a, b, c, out)]);
      }
    store_one(&y[i], finish(sum + (bias ? bias[out] : 0.0f), relu));
  }
}

template <class T>
__global__ void data_kernel(conv_geometry g, std::size_t elements, float const* kernel, T const* dy, T* dx) {
  int const own = g.in.channels / g.groups, filters = g.out.channels / g.groups;
  for (std::size_t i = first(); i < elements; i += step()) {
    int const in = int(i % std::size_t(g.in.channels)), group = in / own;
    std::size_t const position = i / std::size_t(g.in.channels), above = position / std::size_t(g.in.width);
    int const column = int(position % std::size_t(g.in.width)) + g.before.width;
    int const row = int(above % std::size_t(g.in.height)) + g.before.height;
    std::size_t const sample = above / std::size_t(g.in.height);
    float sum = 0;
    for (int a = 0; a < g.kernel.height; ++a)
      for (int b = 0; b < g.kernel.width; ++b) {
        int const top = row - a, left = column - b;
        if (top < 0 || left < 0 || top % g.stride.height != 0 || left % g.stride.width != 0) continue;
        int const p = top / g.stride.height, q = left / g.stride.width;
        if (p >= g.out.height || q >= g.out.width) continue;
        for (int k = group * filters; k < (group + 1) * filters; ++k)
          sum += load_one(&dy[at(g.out, sample, p, q, k)]) * factor<T>(kernel[at(g, a, b, in % own, k)]);
      }
    store_one(&dx[i], sum);
  }
}

/// A block sums for some neighbouring filters and one element of their patch, cut into slices of the places
/// that are added in order.
template <class T>
__global__ void __launch_bounds__(lanes* slices)
    weights_kernel(conv_geometry g, std::size_t places, T const* x, T const* dy, float* dkernel) {
  __shared__ double sums[slices][lanes];
  int const lane = int(threadIdx.x) % lanes, slice = int(threadIdx.x) / lanes;
  int const own = g.in.channels / g.groups, filters = g.out.channels / g.groups;
  int const out = int(blockIdx.y) * lanes + lane;
  int const c = int(blockIdx.x) % own, window = int(blockIdx.x) / own;
  int const a = window / g.kernel.width, b = window % g.kernel.width;
  double sum = 0;
  if (out < g.out.channels)
    for (std::size_t place = std::size_t(slice); place < places; place += slices) {
      int const q = int(place % std::size_t(g.out.width));
      std::size_t const above = place / std::size_t(g.out.width), sample = above / std::size_t(g.out.height);
      int const p = int(above % std::size_t(g.out.height));
      int const row = p * g.stride.height - g.before.height + a,
                column = q * g.stride.width - g.before.width + b;
      if (row < 0 || row >= g.in.height || column < 0 || column >= g.in.width) continue;
      sum += double(load_one(&x[at(g.in, sample, row, column, out / filters * own + c)])) *
             double(load_one(&dy[at(g.out, sample, p, q, out)]));
    }
  sums[slice][lane] = sum;
  __syncthreads();
  if (slice != 0 || out >= g.out.channels) return;
  for (int s = 1; s < slices; ++s) sum += sums[s][lane];
  dkernel[at(g, a, b, c, out)] = float(sum);
}

template <class T>
T const* as(void const* p) {
  return static_cast<T const*>(p);
}
template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

}  // namespace

void finish_rows(queue const& q, std::size_t rows, std::size_t columns, activation f, float const* bias,
                 void* y) {
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    if (columns % wide<T> == 0 && aligned(16, y))
      finish_packs<T, wide<T>>(q, rows, columns, f, bias, as<T>(y));
    else
      finish_packs<T, 1>(q, rows, columns, f, bias, as<T>(y));
  });
}

void place(queue const& q, int batch, shape from, shape to, int down, int right, void const* x, void* y) {
  std::size_t const n = std::size_t(batch) * to.size();
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    launch(q, "borders", place_kernel<T>, blocks(q, n), element_threads, n, from, to, down, right, as<T>(x),
           as<T>(y));
  });
}

void conv2d_forward(queue const& q, conv_geometry const& g, int batch, activation f, void const* x,
                    float const* kernel, float const* bias, void* y) {
  std::size_t const n = std::size_t(batch) * g.out.size();
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    launch(q, "convolutions", forward_kernel<T>, blocks(q, n), element_threads, g, n, f == activation::relu,
           as<T>(x), kernel, bias, as<T>(y));
  });
}

void conv2d_data(queue const& q, conv_geometry const& g, int batch, float const* kernel, void const* dy,
                 void* dx) {
  std::size_t const n = std::size_t(batch) * g.in.size();
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    launch(q, "convolutions back to the image", data_kernel<T>, blocks(q, n), element_threads, g, n, kernel,
           as<T>(dy), as<T>(dx));
  });
}

void conv2d_weights(queue const& q, conv_geometry const& g, int batch, void const* x, void const* dy,
                    float* dkernel) {
  dim3 const grid(unsigned(g.patch()), unsigned(ceil_of(std::size_t(g.out.channels), lanes)));
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    launch(q, "convolutions back to the kernel", weights_kernel<T>, grid, lanes * slices, g,
           std::size_t(batch) * g.positions(), as<T>(x), as<T>(dy), dkernel);
  });
}

}  // namespace edl::cuda_kernels
