// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/tiles.cuh"

// The gradient of a kernel is a product of two matrices for each of the kernel's places: filters × pixels, of
// dy, and pixels × channels, of x as that place sees it. Pixels are many, the others few. So blocks share the
// pixels out, each keeps the sums of some filters and channels for some rows of the kernel, and a second pass
// adds what the blocks have.
namespace edl::cuda_kernels {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int side = tile_side, warps = 8;
constexpr int most_places = 9;                              // of the kernel, whose sums a warp keeps
constexpr std::size_t most_scratch = std::size_t(1) << 23;  // floats

// In shared memory at a time.
constexpr int most_pixels(int wide, bool half) {
  return half ? (wide == side ? 512 : 384) : wide == side ? 288 : 160;
}
constexpr int most_tiles(int wide, bool half) {
  return half ? (wide == side ? 24 : 16) : wide == side ? 16 : 8;
}

/// How the work is shared out.
struct shares {
  int wide;               ///< filters, and channels, of a block: 16 or 32
  int kernel_rows;        ///< of a block
  int filters, channels;  ///< blocks of them
  int kernel_blocks;
  int parts = 1;  ///< of the pixels
  pixel_blocks pixels;

  shares(conv_geometry const& g, bool half)
      : wide(std::min(g.in.channels, g.out.channels) <= side ? side : 2 * side),
        kernel_rows(std::clamp(most_places / g.kernel.width, 1, g.kernel.height)),
        filters((g.out.channels + wide - 1) / wide),
        channels((g.in.channels + wide - 1) / wide),
        kernel_blocks((g.kernel.height + kernel_rows - 1) / kernel_rows),
        pixels(g.out, {kernel_rows, g.kernel.width}, g.stride, most_tiles(wide, half),
               most_pixels(wide, half)) {}

  shares(queue const& q, conv_geometry const& g, int batch) : shares(g, q.half) {
    pixels.share(batch, q.processors);
    std::size_t const most = std::max<std::size_t>(1, most_scratch / weights_of(g));
    parts = int(std::clamp<std::size_t>(ceil_of(std::size_t(q.processors) * 2, std::size_t(blocks())), 1,
                                        std::min(pixels.items(batch), most)));
  }

  int blocks() const { return filters * channels * kernel_blocks; }
  static std::size_t weights_of(conv_geometry const& g) { return g.patch() * std::size_t(g.out.channels); }
};

template <class T, int Wide, int Most>
__global__ void __launch_bounds__(warps * 32, std::is_same_v<T, float>&& Wide > side ? 1 : 2)
    gradient_kernel(conv_geometry g, shares s, int batch, int items, pixels_in_memory<T> x,
                    pixels_in_memory<T> dy, float* sums) {
  using factor = typename tile_numbers<T>::factor;
  constexpr bool half = std::is_same_v<T, bfloat>;
  constexpr int depth = tile_numbers<T>::depth, packs = Wide / wide<T>, across = Wide / side,
                slices = warps / (across * across);
  constexpr std::size_t dy_size = std::size_t(most_tiles(Wide, half)) * side * side,
                        x_size = std::size_t(most_pixels(Wide, half) + pixels_beyond) * side;
  __align__(32) __shared__ T memory[across * (dy_size + x_size)];
  __shared__ int shifts[Most];  // kept out of registers, of which sums need many
  static_assert(sizeof(memory) >= warps * side * side * sizeof(float));
  T *const dy_tiles = memory, *const image = memory + across * dy_size;

  int const warp = int(threadIdx.x) / 32;
  int const slice = warp % slices, pair = warp / slices, own_filters = pair / across,
            own_channels = pair % across;
  int block = int(blockIdx.x);
  int const first_filter = block % s.filters * Wide;
  block /= s.filters;
  int const first_channel = block % s.channels * Wide, first_a = block / s.channels * s.kernel_rows;
  int const places = min(s.kernel_rows, g.kernel.height - first_a) * g.kernel.width;
  extent const before(g.before.height - first_a, g.before.width);
  pixel_blocks const& b = s.pixels;
  int const all_tiles = b.samples * b.tiles;

  wmma::fragment<wmma::accumulator, side, side, depth, float> sum[Most];
#pragma unroll
  for (int k = 0; k < Most; ++k) wmma::fill_fragment(sum[k], 0.0f);
  if (int const k = int(threadIdx.x); k < places)
    shifts[k] = b.shift(k / g.kernel.width, k % g.kernel.width, g.stride.height) * side;
  // What the last tile reads past the end is multiplied by zeros, and so must be numbers.
  for (int i = int(threadIdx.x); i < int(across * x_size); i += warps * 32) image[i] = T(0);

  for (int item = int(blockIdx.y); item < items; item += int(gridDim.y)) {
    int const first_row = item % b.row_blocks * b.rows, first_sample = item / b.row_blocks * b.samples;
    __syncthreads();
    take_image<Wide, side, warps>(b, x, g.stride, before, first_row, first_sample, batch, first_channel,
                                  image, x_size);
    // dy, in rows of as many zeros as the image has pixels of the next row.
    for (int i = int(threadIdx.x); i < all_tiles * side * packs; i += warps * 32) {
      int const tile = i / (side * packs), pixel = tile % b.tiles * side + i / packs % side,
                own = i % packs * wide<T>;
      int const sample = first_sample + tile / b.tiles, row = pixel / b.row, column = pixel % b.row,
                filter = first_filter + own;
      bool const there = sample < batch && row < b.rows && first_row + row < g.out.height &&
                         column < g.out.width && filter < g.out.channels;
      *reinterpret_cast<uint4*>(dy_tiles + std::size_t(own / side) * dy_size + std::size_t(i / packs) * side +
                                own % side) =
          there ? dy(sample, first_row + row, column, filter) : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    for (int tile = slice; tile < all_tiles; tile += slices) {
      T const* const seen =
          image + std::size_t(own_channels) * x_size + std::size_t(b.seen(tile, g.stride.width)) * side;
#pragma unroll 1
      for (int from = 0; from < side; from += depth) {
        wmma::fragment<wmma::matrix_a, side, side, depth, factor, wmma::col_major> filters;
        load_tile(filters,
                  dy_tiles + std::size_t(own_filters) * dy_size + std::size_t(tile * side + from) * side,
                  side);
#pragma unroll
        for (int k = 0; k < Most; ++k) {
          if (k >= places) break;
          wmma::fragment<wmma::matrix_b, side, side, depth, factor, wmma::row_major> channels;
          load_tile(channels, seen + shifts[k] + from * g.stride.width * side, g.stride.width * side);
          wmma::mma_sync(sum[k], filters, channels, sum[k]);
        }
      }
    }
  }

  float* const stage = reinterpret_cast<float*>(memory);
  float* const part = sums + std::size_t(blockIdx.y) * g.patch() * std::size_t(g.out.channels);
#pragma unroll
  for (int k = 0; k < Most; ++k) {
    if (k >= places) break;
    __syncthreads();
    wmma::store_matrix_sync(stage + warp * side * side, sum[k], side, wmma::mem_col_major);
    __syncthreads();
    for (int i = int(threadIdx.x); i < across * across * side * side; i += warps * 32) {
      int const tile = i / (side * side), within = i % (side * side);
      int const filter = first_filter + tile / across * side + within % side,
                channel = first_channel + tile % across * side + within / side;
      if (filter >= g.out.channels || channel >= g.in.channels) continue;
      float v = 0;
      for (int j = 0; j < slices; ++j) v += stage[(tile * slices + j) * side * side + within];
      part[at(g, first_a + k / g.kernel.width, k % g.kernel.width, channel, filter)] = v;
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

bool tensor_cores_take(conv_geometry const& g, bool half) {
  return g.groups == 1 && g.kernel.width <= widest_kernel && g.stride.width <= most_tile_stride &&
         shares::weights_of(g) <= most_scratch && shares(g, half).pixels.rows > 0;
}

std::size_t kernel_gradient_scratch(queue const& q, conv_geometry const& g, int batch) {
  return std::size_t(shares(q, g, batch).parts) * shares::weights_of(g);
}

void kernel_gradient(queue const& q, conv_geometry const& g, int batch, void const* x, void const* dy,
                     float* dkernel, float* scratch) {
  if (batch == 0) return;
  shares const s(q, g, batch);
  dim3 const grid(unsigned(s.blocks()), unsigned(s.parts));
  float* const sums = s.parts == 1 ? dkernel : scratch;
  auto const with = [&]<class T, int Wide> {
    auto const go = [&](auto* kernel) {
      launch(q, "gradients of kernels", kernel, grid, warps * 32, g, s, batch, int(s.pixels.items(batch)),
             pixels_in_memory<T>(x, g.in), pixels_in_memory<T>(dy, g.out), sums);
    };
    bool const few = g.kernel.height * g.kernel.width <= 3;
    few ? go(gradient_kernel<T, Wide, 3>) : go(gradient_kernel<T, Wide, most_places>);
  };
  by_type(q.half, [&]<class T>(T) {
    s.wide == side ? with.template operator()<T, side>() : with.template operator()<T, 2 * side>();
  });
  std::size_t const n = shares::weights_of(g);
  if (s.parts > 1)
    launch(q, "gradients of kernels", add_parts_kernel, dim3(unsigned(ceil_of(n, element_threads))),
           element_threads, n, s.parts, sums, dkernel);
}

}  // namespace edl::cuda_kernels
