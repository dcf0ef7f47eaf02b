// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned show_threads = 256;

/// A block is of one picture, a thread of N neighbours in it.
template <class T, int N>
__global__ void __launch_bounds__(show_threads)
    show_kernel(shape const s, float const* __restrict__ from, std::uint32_t const* __restrict__ rows,
                placement const* __restrict__ how, T* __restrict__ y) {
  std::size_t const size = s.size(), packs = size / N;
  float const* const picture = from + std::size_t(rows[blockIdx.x]) * size;
  T* const shown = y + std::size_t(blockIdx.x) * size;
  placement const p = how[blockIdx.x];
  for (std::size_t at = std::size_t(blockIdx.y) * blockDim.x + threadIdx.x; at < packs;
       at += std::size_t(gridDim.y) * blockDim.x) {
    unsigned const first = unsigned(at) * N, pixel = first / unsigned(s.channels);
    int k = int(first % unsigned(s.channels)), i = int(pixel / unsigned(s.width)),
        j = int(pixel % unsigned(s.width));
    int row = p.row(s, i), column = p.column(s, j);
    pack<N> v;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      float const given =
          row < 0 || column < 0 ? 0.0f : picture[(std::size_t(row) * s.width + column) * s.channels + k];
      v.lane[e] = p.hole(i, j) ? 0.0f : fmaf(given, p.contrast, p.brightness);
      if (++k < s.channels) continue;
      k = 0;
      if (++j == s.width) {
        j = 0;
        row = p.row(s, ++i);
      }
      column = p.column(s, j);
    }
    store<N>(shown + first, v);
  }
}

/// Rows of `width` numbers, each to where `rows` says.
struct scattered_rows {
  template <int N>
  using inputs = array<float, N>;

  float const* from;
  std::uint32_t const* rows;
  float* to;
  std::size_t width;

  template <int N>
  __device__ __forceinline__ inputs<N> load(std::size_t i) const {
    return fetch<N>(from + i);
  }
  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, inputs<N> const& in) const {
    put<N>(to + std::size_t(rows[i / width]) * width + i % width, in);
  }
};

}  // namespace

void show(queue const& q, shape s, std::size_t batch, float const* from, std::uint32_t const* rows,
          placement const* how, void* y) {
  if (batch == 0) return;
  auto const work = [&]<class T, int N>() {
    std::size_t const chunks = ceil_of(s.size() / N, show_threads);
    dim3 const grid(unsigned(batch), unsigned(std::min<std::size_t>(chunks, 64)));
    launch(q, "samples", show_kernel<T, N>, grid, show_threads, s, from, rows, how, static_cast<T*>(y));
  };
  by_channels(q, s.size(), work, y);
}

void scatter_rows(queue const& q, std::size_t batch, std::size_t width, float const* from,
                  std::uint32_t const* rows, float* to) {
  bool const together = width % 4 == 0 && aligned(16, from, to);
  for_each_element<4>(q, "samples", batch * width, together, scattered_rows{from, rows, to, width});
}

}  // namespace edl::cuda_kernels
