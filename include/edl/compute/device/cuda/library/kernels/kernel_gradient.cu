// SPDX-License-Identifier: Apache-2.0
#include <mma.h>

#include "edl/compute/device/cuda/library/kernels/geometry.cuh"

// The gradient of a kernel is a product of two matrices for each of the kernel's places: filters × pixels, of
// dy, and pixels × channels, of x as that place sees it. Pixels are many, the others few. So blocks share the
// pixels out, each keeps the sums of some filters and channels for one row of the kernel, and a second pass
// adds what the blocks have.
namespace edl::cuda_kernels {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int side = 16;                    // of a tile of tensor cores
constexpr int most_pixels = 128;            // in shared memory at a time
constexpr int most_stride = 2, widest = 7;  // of a kernel
constexpr int warps = 4;
constexpr std::size_t most_scratch = std::size_t(1) << 23;  // floats

/// How the work is shared out.
struct shares {
  int row = 0;     ///< pixels that a row of dy takes: its own, and as many zeros as the kernel needs
  int rows = 0;    ///< of dy at a time
  int pixels = 0;  ///< of them all, in whole tiles
  int wide = 0;    ///< filters, and channels, of a block: 16 or 32
  int filters = 0, channels = 0;  ///< blocks of them
  int parts = 0;                  ///< of the pixels

  shares(queue const& q, conv_geometry const& g, int batch) {
    row = row_of(g);
    rows = most_pixels / row;
    pixels = int(ceil_of(std::size_t(rows * row), side)) * side;
    wide = std::min(g.in.channels, g.out.channels) <= side ? side : 2 * side;
    filters = int(ceil_of(std::size_t(g.out.channels), std::size_t(wide)));
    channels = int(ceil_of(std::size_t(g.in.channels), std::size_t(wide)));
    std::size_t const steps = ceil_of(std::size_t(batch) * std::size_t(g.out.height), std::size_t(rows)),
                      others = std::size_t(filters) * std::size_t(channels) * std::size_t(g.kernel.height),
                      most = std::max<std::size_t>(1, most_scratch / weights_of(g));
    parts = int(
        std::clamp<std::size_t>(ceil_of(std::size_t(q.processors) * 4, others), 1, std::min(steps, most)));
  }

  static int row_of(conv_geometry const& g) {
    return g.out.width - 1 + (g.kernel.width + g.stride.width - 1) / g.stride.width;
  }
  static std::size_t weights_of(conv_geometry const& g) { return g.patch() * std::size_t(g.out.channels); }
};

/// Eight neighbours, or as many as there are, and zeros.
__device__ __forceinline__ uint4 neighbours(bfloat const* from, int left, bool together) {
  if (left >= 8 && together) return *reinterpret_cast<uint4 const*>(from);
  array<bfloat, 8> v{};
  for (int i = 0; i < 8 && i < left; ++i) v.lane[i] = from[i];
  return std::bit_cast<uint4>(v);
}

template <int Wide, int Most>
__global__ void __launch_bounds__(warps * 32)
    gradient_kernel(conv_geometry g, shares s, std::size_t all_rows, bool x_together, bool dy_together,
                    bfloat const* x, bfloat const* dy, float* sums) {
  // A place of a tile begins at a multiple of 32 bytes, and eight places after each other in different banks.
  constexpr int pitch = Wide == side ? side : Wide + side;
  constexpr int across = Wide / side, slices = warps / (across * across);
  constexpr std::size_t dy_size = std::size_t(most_pixels) * pitch,
                        x_size = std::size_t(most_pixels * most_stride + widest) * pitch;
  __align__(32) __shared__ bfloat tiles[dy_size + x_size];
  static_assert(sizeof(tiles) >= warps * side * side * sizeof(float));
  bfloat *const dy_tile = tiles, *const x_tile = tiles + dy_size;

  int const warp = int(threadIdx.x) / 32, slice = warp % slices, pair = warp / slices;
  int const own_filter = pair / across * side, own_channel = pair % across * side;
  int block = int(blockIdx.x);
  int const first_filter = block % s.filters * Wide;
  block /= s.filters;
  int const first_channel = block % s.channels * Wide, a = block / s.channels;
  int const stride = g.stride.width, x_pixels = s.pixels * stride + g.kernel.width - stride;

  wmma::fragment<wmma::accumulator, side, side, side, float> sum[Most];
#pragma unroll
  for (int b = 0; b < Most; ++b) wmma::fill_fragment(sum[b], 0.0f);

  std::size_t const steps = ceil_of(all_rows, std::size_t(s.rows));
  for (std::size_t step = blockIdx.y; step < steps; step += gridDim.y) {
    std::size_t const first_row = step * std::size_t(s.rows);
    __syncthreads();
    for (int i = int(threadIdx.x); i < s.pixels * (Wide / 8); i += warps * 32) {
      int const pixel = i / (Wide / 8), filter = first_filter + i % (Wide / 8) * 8;
      int const q = pixel % s.row;
      std::size_t const row = first_row + std::size_t(pixel / s.row);
      bool const there =
          pixel / s.row < s.rows && row < all_rows && q < g.out.width && filter < g.out.channels;
      *reinterpret_cast<uint4*>(dy_tile + pixel * pitch + i % (Wide / 8) * 8) =
          there ? neighbours(
                      dy + (row * std::size_t(g.out.width) + std::size_t(q)) * std::size_t(g.out.channels) +
                          std::size_t(filter),
                      g.out.channels - filter, dy_together)
                : make_uint4(0, 0, 0, 0);
    }
    for (int i = int(threadIdx.x); i < x_pixels * (Wide / 8); i += warps * 32) {
      int const pixel = i / (Wide / 8), channel = first_channel + i % (Wide / 8) * 8;
      int const column = pixel % (s.row * stride) - g.before.width;
      std::size_t const out_row = first_row + std::size_t(pixel / (s.row * stride));
      std::size_t const sample = out_row / std::size_t(g.out.height);
      int const row = int(out_row % std::size_t(g.out.height)) * g.stride.height - g.before.height + a;
      bool const there = pixel / (s.row * stride) < s.rows && out_row < all_rows && row >= 0 &&
                         row < g.in.height && column >= 0 && column < g.in.width && channel < g.in.channels;
      *reinterpret_cast<uint4*>(x_tile + pixel * pitch + i % (Wide / 8) * 8) =
          there ? neighbours(x + at(g.in, sample, row, column, channel), g.in.channels - channel, x_together)
                : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    for (int pixel = slice * side; pixel < s.pixels; pixel += slices * side) {
      wmma::fragment<wmma::matrix_a, side, side, side, __nv_bfloat16, wmma::col_major> filters;
      wmma::load_matrix_sync(
          filters, reinterpret_cast<__nv_bfloat16 const*>(dy_tile + pixel * pitch + own_filter), pitch);
#pragma unroll
      for (int b = 0; b < Most; ++b) {
        if (b >= g.kernel.width) break;
        wmma::fragment<wmma::matrix_b, side, side, side, __nv_bfloat16, wmma::row_major> channels;
        wmma::load_matrix_sync(
            channels,
            reinterpret_cast<__nv_bfloat16 const*>(x_tile + (pixel * stride + b) * pitch + own_channel),
            unsigned(stride * pitch));
        wmma::mma_sync(sum[b], filters, channels, sum[b]);
      }
    }
  }

  float* const stage = reinterpret_cast<float*>(tiles);
  float* const part = sums + std::size_t(blockIdx.y) * g.patch() * std::size_t(g.out.channels);
#pragma unroll
  for (int b = 0; b < Most; ++b) {
    if (b >= g.kernel.width) break;
    __syncthreads();
    wmma::store_matrix_sync(stage + warp * side * side, sum[b], side, wmma::mem_col_major);
    __syncthreads();
    for (int i = int(threadIdx.x); i < across * across * side * side; i += warps * 32) {
      int const tile = i / (side * side), within = i % (side * side);
      int const filter = first_filter + tile / across * side + within % side,
                channel = first_channel + tile % across * side + within / side;
      if (filter >= g.out.channels || channel >= g.in.channels) continue;
      float v = 0;
      for (int k = 0; k < slices; ++k) v += stage[(tile * slices + k) * side * side + within];
      part[at(g, a, b, channel, filter)] = v;
    }
  }
}

__global__ void __launch_bounds__(element_threads)
    add_parts_kernel(std::size_t n, int parts, float const* sums, float* to) {
  std::size_t const i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = 0;
  for (int part = 0; part < parts; ++part) v += sums[std::size_t(part) * n + i];
  to[i] = v;
}

}  // namespace

bool tensor_cores_take(conv_geometry const& g) {
  return g.groups == 1 && g.kernel.width <= widest && g.stride.width <= most_stride &&
         shares::row_of(g) <= most_pixels && shares::weights_of(g) <= most_scratch;
}

std::size_t kernel_gradient_scratch(queue const& q, conv_geometry const& g, int batch) {
  return std::size_t(shares(q, g, batch).parts) * shares::weights_of(g);
}

void kernel_gradient(queue const& q, conv_geometry const& g, int batch, void const* x, void const* dy,
                     float* dkernel, float* scratch) {
  shares const s(q, g, batch);
  auto const together = [](void const* p, int channels) { return channels % 8 == 0 && aligned(16, p); };
  dim3 const grid(unsigned(s.filters * s.channels * g.kernel.height), unsigned(s.parts));
  float* const sums = s.parts == 1 ? dkernel : scratch;
  auto const with = [&]<int Wide, int Most> {
    launch(q, "gradients of kernels", gradient_kernel<Wide, Most>, grid, warps * 32, g, s,
           std::size_t(batch) * std::size_t(g.out.height), together(x, g.in.channels),
           together(dy, g.out.channels), static_cast<bfloat const*>(x), static_cast<bfloat const*>(dy), sums);
  };
  bool const few = g.kernel.width <= 3;
  if (s.wide == side)
    few ? with.template operator()<side, 3>() : with.template operator()<side, widest>();
  else
    few ? with.template operator()<2 * side, 3>() : with.template operator()<2 * side, widest>();
  std::size_t const n = shares::weights_of(g);
  if (s.parts > 1)
    launch(q, "gradients of kernels", add_parts_kernel, dim3(unsigned(ceil_of(n, element_threads))),
           element_threads, n, s.parts, sums, dkernel);
}

}  // namespace edl::cuda_kernels
