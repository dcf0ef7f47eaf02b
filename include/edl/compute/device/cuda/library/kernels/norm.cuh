// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cuda/library/kernels/columns.cuh"
#include "edl/compute/device/cuda/library/kernels/curves.cuh"

/// What the kernels of batch normalisation, forward and backward, have in common.
namespace edl::cuda_kernels {

/// Rows that a thread has under way at a time.
constexpr unsigned rows_at_once = 2;

/// Row r + more, or r where that is none: all loads are done, so that they are under way together.
__device__ __forceinline__ unsigned nearest(unsigned r, unsigned more, unsigned rows) {
  return r + more < rows ? r + more : r;
}

/// Of a channel.
struct norm_parameters {
  float const *gamma, *beta;  // no gamma: ones
  float shift_gain;

  __device__ __forceinline__ float scale(unsigned k) const { return gamma ? gamma[k] : 1; }
  __device__ __forceinline__ float shift(unsigned k) const { return shift_gain * beta[k]; }
};

template <activation F>
__device__ __forceinline__ float activate(float z) {
  if constexpr (F == activation::relu) return z < 0 ? 0 : z;
  if constexpr (F == activation::gelu) return gelu_of(z);
  if constexpr (F == activation::silu) return silu_of(z);
  return z;
}

/// The gradient with respect to z of one with respect to activate(z).
template <activation F>
__device__ __forceinline__ float before(float z, float d) {
  if constexpr (F == activation::relu) return z > 0 ? d : 0;
  if constexpr (F == activation::gelu) return d * gelu_slope(z);
  if constexpr (F == activation::silu) return d * silu_slope(z);
  return d;
}

/// work.operator()<F>() for the activation that a chain says.
template <class Work>
void by_activation(activation f, Work&& work) {
  switch (f) {
    case activation::none:
      return work.template operator()<activation::none>();
    case activation::relu:
      return work.template operator()<activation::relu>();
    case activation::gelu:
      return work.template operator()<activation::gelu>();
    case activation::silu:
      return work.template operator()<activation::silu>();
  }
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

// ---- Launches ----

/// Blocks that share `items` rows of each tile.
inline dim3 grid_of(queue const& q, column_tiling const& t, std::size_t items, unsigned per_thread) {
  std::size_t const most = std::max<std::size_t>(1, 2 * std::size_t(q.processors) / t.tiles);
  return dim3(unsigned(std::clamp<std::size_t>(ceil_of(items, std::size_t(t.down) * per_thread), 1, most)),
              t.tiles);
}

inline std::size_t rows_of(norm_chain const& c, int batch) {
  return std::size_t(batch) * std::size_t(c.in.height) * std::size_t(c.in.width);
}

}  // namespace edl::cuda_kernels
