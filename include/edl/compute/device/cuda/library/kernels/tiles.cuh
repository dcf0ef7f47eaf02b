// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mma.h>

#include "edl/compute/device/cuda/library/kernels/geometry.cuh"

/// Convolutions as products of tiles of tensor cores. A block has what its pixels see of an image in shared
/// memory, in rows that go on as far as the end of a window reaches. So what another place of the kernel sees
/// is the same matrix some pixels later, and a border is zeros.
namespace edl::cuda_kernels {

constexpr int tile_side = 16;

constexpr int widest_kernel = 7, most_tile_stride = 3;
/// Pixels that the last tile reads past the end of what lies there.
constexpr int pixels_beyond = 64;
static_assert(pixels_beyond >= (tile_side - 1) * most_tile_stride + widest_kernel);

/// How the pixels of a result are shared out to blocks.
struct pixel_blocks {
  int row;      ///< pixels of the result that a row takes, with those that a window's end needs
  int columns;  ///< of the image in such a row
  int rows;     ///< of the result in a block; 0: none fits
  int planes;   ///< rows of the image a stride apart lie below each other, in so many planes
  int plane_rows;
  int row_blocks;  ///< of a sample
  int tiles;       ///< of pixels of a sample in a block
  int samples;     ///< in a block

  /// Of `out`, with room for so many tiles, and so many pixels of the image.
  pixel_blocks(shape out, extent window, extent stride, int most_tiles, int most_pixels)
      : row(out.width - 1 + (window.width + stride.width - 1) / stride.width),
        columns(row * stride.width),
        rows(out.height),
        planes(std::min(stride.height, window.height)) {
    auto const fits = [&] {
      plane_rows = rows + (window.height - 1) / stride.height;
      tiles = (rows * row + tile_side - 1) / tile_side;
      return tiles <= most_tiles && sample_pixels() <= most_pixels;
    };
    while (rows > 0 && !fits()) --rows;
    if (rows == 0) return;
    row_blocks = (out.height + rows - 1) / rows;
    rows = (out.height + row_blocks - 1) / row_blocks;
    (void)fits();
    samples = row_blocks > 1 ? 1 : std::min(most_tiles / tiles, most_pixels / sample_pixels());
  }

  /// Fewer samples in a block where there would not be a block for each processor.
  void share(int batch, int processors) {
    int const each = int(ceil_of(std::size_t(batch), std::size_t(std::max(processors, 1))));
    samples = std::clamp(each, 1, samples);
  }
  std::size_t items(int batch) const {
    return ceil_of(std::size_t(batch), std::size_t(samples)) * std::size_t(row_blocks);
  }

  __host__ __device__ int sample_pixels() const { return planes * plane_rows * columns; }

  /// Where what row `a` and column `b` of a kernel see begins, in pixels.
  __device__ int shift(int a, int b, int stride) const {
    return (a % stride * plane_rows + a / stride) * columns + b;
  }
  /// Where what a tile's pixels see begins.
  __device__ int seen(int tile, int stride) const {
    return tile / tiles * sample_pixels() + tile % tiles * tile_side * stride;
  }
};

/// Eight neighbours, or as many as there are, and zeros.
__device__ __forceinline__ uint4 neighbours(bfloat const* from, int left, bool together) {
  if (left >= 8 && together) return *reinterpret_cast<uint4 const*>(from);
  array<bfloat, 8> v{};
  for (int i = 0; i < 8 && i < left; ++i) v.lane[i] = from[i];
  return std::bit_cast<uint4>(v);
}

/// Whether rows of `channels` that begin at p can be read eight at a time.
inline bool in_eights(void const* p, int channels) { return channels % 8 == 0 && aligned(16, p); }

/// Samples in memory.
struct pixels_in_memory {
  bfloat const* at;
  shape s;
  bool together;  ///< `in_eights`

  __device__ __forceinline__ uint4 operator()(int sample, int row, int column, int channel) const {
    return neighbours(at + cuda_kernels::at(s, std::size_t(sample), row, column, channel),
                      s.channels - channel, together);
  }
};

/// Brings `Wide` channels of what a block's pixels see into shared memory, 16 of them side by side, `size`
/// apart.
template <int Wide, int Warps>
__device__ __forceinline__ void take_image(pixel_blocks const& b, pixels_in_memory const& from, extent stride,
                                           extent before, int first_row, int first_sample, int batch,
                                           int first_channel, bfloat* to, std::size_t size) {
  constexpr int packs = Wide / 8;
  int const rows_of_sample = b.planes * b.plane_rows;
  for (int r = int(threadIdx.x) / 32; r < b.samples * rows_of_sample; r += Warps) {
    int const of_sample = r % rows_of_sample, sample = first_sample + r / rows_of_sample;
    int const row =
        (first_row + of_sample % b.plane_rows) * stride.height + of_sample / b.plane_rows - before.height;
    bool const there = sample < batch && row >= 0 && row < from.s.height;
    for (int i = int(threadIdx.x) % 32; i < packs * b.columns; i += 32) {
      int const column = i / packs - before.width, pack = i % packs, channel = first_channel + pack * 8;
      bool const within = there && column >= 0 && column < from.s.width && channel < from.s.channels;
      *reinterpret_cast<uint4*>(to + std::size_t(pack / 2) * size +
                                std::size_t(r * b.columns + i / packs) * tile_side + pack % 2 * 8) =
          within ? from(sample, row, column, channel) : make_uint4(0, 0, 0, 0);
    }
  }
}

}  // namespace edl::cuda_kernels
