// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned muon_threads = 256;

__device__ std::size_t first() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t step() { return std::size_t(gridDim.x) * blockDim.x; }

/// A block's squares are added in an order that its size says.
__global__ void __launch_bounds__(muon_threads)
    momentum_kernel(std::size_t n, float mu, bool nesterov, float const* __restrict__ g,
                    float* __restrict__ m, float* __restrict__ u, float* __restrict__ squares) {
  __shared__ float shared[muon_threads];
  float const rest = 1 - mu;
  float sum = 0;
  for (std::size_t i = first(); i < n; i += step()) {
    float const now = mu * m[i] + rest * g[i], at = nesterov ? mu * now + rest * g[i] : now;
    m[i] = now;
    u[i] = at;
    sum = fmaf(at, at, sum);
  }
  shared[threadIdx.x] = sum;
  for (unsigned half = muon_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) squares[blockIdx.x] = shared[0];
}

/// Where element i of a matrix lies in the higher of itself and its transpose.
__device__ __forceinline__ std::size_t turned(std::size_t i, std::size_t rows, std::size_t columns) {
  return rows >= columns ? i : i % columns * rows + i / columns;
}

template <class T>
__global__ void __launch_bounds__(muon_threads)
    begin_kernel(std::size_t rows, std::size_t columns, unsigned parts, float const* __restrict__ u,
                 float const* __restrict__ squares, T* __restrict__ to) {
  __shared__ float scale;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (unsigned p = 0; p < parts; ++p) sum += squares[p];
    scale = 1 / (sqrtf(sum) + 1e-7f);
  }
  __syncthreads();
  for (std::size_t i = first(); i < rows * columns; i += step())
    store_one(&to[turned(i, rows, columns)], u[i] * scale);
}

__global__ void __launch_bounds__(muon_threads)
    factor_kernel(std::size_t n, float a, float b, float c, float const* __restrict__ gram,
                  float const* __restrict__ square, float* __restrict__ to) {
  for (std::size_t i = first(); i < n * n; i += step())
    to[i] = b * gram[i] + c * square[i] + (i % (n + 1) == 0 ? a : 0);
}

template <class T>
__global__ void __launch_bounds__(muon_threads)
    finish_kernel(std::size_t rows, std::size_t columns, T const* __restrict__ o, float keep, float rate,
                  float* __restrict__ weights, bfloat* __restrict__ rounded) {
  for (std::size_t i = first(); i < rows * columns; i += step()) {
    float const w = keep * weights[i] - rate * load_one(&o[turned(i, rows, columns)]);
    weights[i] = w;
    if (rounded) rounded[i] = to_bfloat16(w);
  }
}

dim3 grid_for(queue const& q, std::size_t n) {
  return dim3(unsigned(std::clamp<std::size_t>(ceil_of(n, muon_threads), 1, norm_parts(q))));
}

}  // namespace

std::size_t norm_parts(queue const& q) { return std::size_t(std::max(q.processors, 1)) * 2; }

void muon_momentum(queue const& q, std::size_t n, float momentum, bool nesterov, float const* gradients,
                   float* m, float* u, float* squares) {
  launch(q, "muon", momentum_kernel, dim3(unsigned(norm_parts(q))), muon_threads, n, momentum, nesterov,
         gradients, m, u, squares);
}

void muon_begin(queue const& q, std::size_t rows, std::size_t columns, float const* u, float const* squares,
                void* to) {
  by_type(q.half, [&]<class T>(T) {
    launch(q, "muon", begin_kernel<T>, grid_for(q, rows * columns), muon_threads, rows, columns,
           unsigned(norm_parts(q)), u, squares, static_cast<T*>(to));
  });
}

void muon_factor(queue const& q, std::size_t n, float a, float b, float c, float const* gram,
                 float const* square, float* to) {
  launch(q, "muon", factor_kernel, grid_for(q, n * n), muon_threads, n, a, b, c, gram, square, to);
}

void muon_finish(queue const& q, std::size_t rows, std::size_t columns, void const* o, float keep, float rate,
                 float* weights, std::uint16_t* rounded) {
  by_type(q.half, [&]<class T>(T) {
    launch(q, "muon", finish_kernel<T>, grid_for(q, rows * columns), muon_threads, rows, columns,
           static_cast<T const*>(o), keep, rate, weights, rounded);
  });
}

}  // namespace edl::cuda_kernels
