// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

// A block belongs to one matrix, blockIdx.y, and to one of the parts of its elements.
namespace edl::cuda_kernels {
namespace {

constexpr unsigned muon_threads = 256;

__device__ std::size_t first() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t step() { return std::size_t(gridDim.x) * blockDim.x; }

/// The sum of what the block's threads have, in an order that its size says; all threads get it.
__device__ __forceinline__ float sum_of_block(float own, float* shared) {
  __syncthreads();
  shared[threadIdx.x] = own;
  for (unsigned half = muon_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

/// squares = [matrix][of u, of w][part]
__global__ void __launch_bounds__(muon_threads)
    momentum_kernel(muon_batch const b, float mu, bool nesterov, float* __restrict__ u,
                    float* __restrict__ squares) {
  __shared__ float shared[muon_threads];
  muon_part const& p = b.part[blockIdx.y];
  std::size_t const n = std::size_t(p.rows) * p.columns;
  float const rest = 1 - mu;
  float of_u = 0, of_w = 0;
  for (std::size_t i = first(); i < n; i += step()) {
    float const g = p.gradients[i], now = mu * p.momentum[i] + rest * g,
                at = nesterov ? mu * now + rest * g : now;
    p.momentum[i] = now;
    u[p.first + i] = at;
    of_u = fmaf(at, at, of_u);
    if (p.norm > 0) of_w = fmaf(p.weights[i], p.weights[i], of_w);
  }
  float* const to = squares + std::size_t(blockIdx.y) * 2 * gridDim.x + blockIdx.x;
  of_u = sum_of_block(of_u, shared);
  of_w = sum_of_block(of_w, shared);
  if (threadIdx.x == 0) to[0] = of_u, to[gridDim.x] = of_w;
}

/// The norm of u (`which` = 0) or of w (1).
__device__ __forceinline__ float norm_of(float const* __restrict__ squares, unsigned which, unsigned parts,
                                         float* shared) {
  float const* const own = squares + (std::size_t(blockIdx.y) * 2 + which) * parts;
  return sqrtf(sum_of_block(threadIdx.x < parts ? own[threadIdx.x] : 0, shared));
}

template <class T>
__global__ void __launch_bounds__(muon_threads)
    begin_kernel(muon_batch const b, unsigned parts, float const* __restrict__ u,
                 float const* __restrict__ squares, T* __restrict__ to) {
  __shared__ float shared[muon_threads];
  muon_part const& p = b.part[blockIdx.y];
  float const scale = 1 / (norm_of(squares, 0, parts, shared) + 1e-7f);
  std::size_t const size = b.high * b.wide;
  bool const turned = p.rows < p.columns;
  for (std::size_t i = first(); i < size; i += step()) {
    std::size_t const down = i / b.wide, across = i % b.wide, row = turned ? across : down,
                      column = turned ? down : across;
    bool const there = row < p.rows && column < p.columns;
    store_one(&to[blockIdx.y * size + i], there ? u[p.first + row * p.columns + column] * scale : 0.0f);
  }
}

__global__ void __launch_bounds__(muon_threads)
    factor_kernel(std::size_t n, float alpha, float beta, float gamma, float const* __restrict__ gram,
                  float const* __restrict__ square, float* __restrict__ to, bfloat* __restrict__ rounded) {
  std::size_t const from = blockIdx.y * n * n;
  for (std::size_t i = first(); i < n * n; i += step()) {
    float const v = beta * gram[from + i] + gamma * square[from + i] + (i % (n + 1) == 0 ? alpha : 0);
    to[from + i] = v;
    if (rounded) rounded[from + i] = to_bfloat16(v);
  }
}

template <class T>
__global__ void __launch_bounds__(muon_threads)
    finish_kernel(muon_batch const b, unsigned parts, T const* __restrict__ o,
                  float const* __restrict__ squares) {
  __shared__ float shared[muon_threads];
  muon_part const& p = b.part[blockIdx.y];
  float keep = p.keep;
  if (p.norm > 0) keep *= p.norm / (norm_of(squares, 1, parts, shared) + 1e-7f);
  T const* const own = o + blockIdx.y * b.high * b.wide;
  std::size_t const n = std::size_t(p.rows) * p.columns;
  for (std::size_t i = first(); i < n; i += step()) {
    std::size_t const row = i / p.columns, column = i % p.columns;
    std::size_t const at = p.rows < p.columns ? column * b.wide + row : row * b.wide + column;
    float const w = keep * p.weights[i] - p.rate * load_one(&own[at]);
    p.weights[i] = w;
    if (p.rounded) p.rounded[i] = to_bfloat16(w);
  }
}

/// Blocks of a matrix, which all kernels of a step have.
unsigned parts_of(queue const& q, unsigned count) {
  unsigned const wanted = 2 * unsigned(std::max(q.processors, 1)) / std::max(count, 1u);
  return std::clamp(wanted, 1u, muon_threads);
}

dim3 grid_of(queue const& q, muon_batch const& b) { return {parts_of(q, b.count), b.count}; }

}  // namespace

std::size_t muon_sums(queue const& q, unsigned count) { return std::size_t(count) * 2 * parts_of(q, count); }

void muon_momentum(queue const& q, muon_batch const& b, float momentum, bool nesterov, float* u,
                   float* squares) {
  launch(q, "muon", momentum_kernel, grid_of(q, b), muon_threads, b, momentum, nesterov, u, squares);
}

void muon_begin(queue const& q, muon_batch const& b, float const* u, float const* squares, void* to) {
  by_type(q.half, [&]<class T>(T) {
    launch(q, "muon", begin_kernel<T>, grid_of(q, b), muon_threads, b, parts_of(q, b.count), u, squares,
           static_cast<T*>(to));
  });
}

void muon_factor(queue const& q, muon_batch const& b, float alpha, float beta, float gamma, float const* gram,
                 float const* square, float* to, std::uint16_t* rounded) {
  launch(q, "muon", factor_kernel, grid_of(q, b), muon_threads, b.wide, alpha, beta, gamma, gram, square, to,
         rounded);
}

void muon_finish(queue const& q, muon_batch const& b, void const* o, float const* squares) {
  by_type(q.half, [&]<class T>(T) {
    launch(q, "muon", finish_kernel<T>, grid_of(q, b), muon_threads, b, parts_of(q, b.count),
           static_cast<T const*>(o), squares);
  });
}

}  // namespace edl::cuda_kernels
