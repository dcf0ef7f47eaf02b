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

/// Numbers as tensor cores take them: bfloat16, or float32 of which 11 bits count. `depth` are multiplied at
/// a time.
template <class T>
struct tile_numbers;
template <>
struct tile_numbers<bfloat> {
  using memory = __nv_bfloat16;
  using factor = __nv_bfloat16;
  static constexpr int depth = 16;
};
template <>
struct tile_numbers<float> {
  using memory = float;
  using factor = nvcuda::wmma::precision::tf32;
  static constexpr int depth = 8;
};

template <class Fragment, class T>
__device__ __forceinline__ void load_tile(Fragment& to, T const* from, int pitch) {
  nvcuda::wmma::load_matrix_sync(to, reinterpret_cast<typename tile_numbers<T>::memory const*>(from),
                                 unsigned(pitch));
}

/// Neighbours that take 16 bytes, or as many as there are, and zeros; rounded for tensor cores.
template <class T>
__device__ __forceinline__ uint4 neighbours(T const* from, int left, bool together) {
  array<T, wide<T>> v{};
  if (left >= wide<T> && together)
    v = fetch<wide<T>>(from);
  else
    for (int i = 0; i < wide<T> && i < left; ++i) v.lane[i] = from[i];
  if constexpr (std::is_same_v<T, float>)
    for (float& each : v.lane) each = nvcuda::wmma::__float_to_tf32(each);
  return std::bit_cast<uint4>(v);
}

/// Whether rows of `channels` that begin at p can be read 16 bytes at a time.
template <class T>
bool together(void const* p, int channels) {
  return channels % wide<T> == 0 && aligned(16, p);
}

/// Samples in memory.
template <class T>
struct pixels_in_memory {
  T const* at;
  shape s;
  bool together;

  pixels_in_memory(void const* p, shape of)
      : at(static_cast<T const*>(p)), s(of), together(cuda_kernels::together<T>(p, of.channels)) {}

  __device__ __forceinline__ uint4 operator()(int sample, int row, int column, int channel) const {
    return neighbours(at + cuda_kernels::at(s, std::size_t(sample), row, column, channel),
                      s.channels - channel, together);
  }
};

/// Brings `Wide` channels of what a block's pixels see into shared memory, `Pitch` of them side by side, and
/// those behind them `size` further on.
template <int Wide, int Pitch, int Warps, class T>
__device__ __forceinline__ void take_image(pixel_blocks const& b, pixels_in_memory<T> const& from,
                                           extent stride, extent before, int first_row, int first_sample,
                                           int batch, int first_channel, T* to, std::size_t size) {
  constexpr int packs = Wide / wide<T>;
  int const rows_of_sample = b.planes * b.plane_rows;
  for (int r = int(threadIdx.x) / 32; r < b.samples * rows_of_sample; r += Warps) {
    int const of_sample = r % rows_of_sample, sample = first_sample + r / rows_of_sample;
    int const row =
        (first_row + of_sample % b.plane_rows) * stride.height + of_sample / b.plane_rows - before.height;
    bool const there = sample < batch && row >= 0 && row < from.s.height;
    for (int i = int(threadIdx.x) % 32; i < packs * b.columns; i += 32) {
      int const column = i / packs - before.width, own = i % packs * wide<T>, channel = first_channel + own;
      bool const within = there && column >= 0 && column < from.s.width && channel < from.s.channels;
      *reinterpret_cast<uint4*>(to + std::size_t(own / Pitch) * size +
                                std::size_t(r * b.columns + i / packs) * Pitch + own % Pitch) =
          within ? from(sample, row, column, channel) : make_uint4(0, 0, 0, 0);
    }
  }
}

}  // namespace edl::cuda_kernels
