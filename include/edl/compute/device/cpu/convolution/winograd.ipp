// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/convolution/winograd.hpp"
#include "edl/core/inline.hpp"

#ifdef __x86_64__

#include <algorithm>
#include <array>
#include <utility>

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/convolution/winograd_tiles.hpp"

namespace edl::detail::winograd {

/// Of a thread's rooms: transformed inputs and outputs, sums of products, zeros with sums of a bias's
/// gradient. The kernel's factors are in a room of the first thread.
enum room_number : std::size_t { inputs_room, outputs_room, sums_room, small_room, factors_room };

inline half const* halves(float const* x) { return reinterpret_cast<half const*>(x); }
inline half* halves(float* x) { return reinterpret_cast<half*>(x); }
inline half* halves(basic_cpu<float>& cpu, int thread, room_number room, std::size_t n) {
  return halves(cpu.room(thread, room, (n + 1) / 2).data());
}

/// Columns of one product.
inline std::size_t columns_of(std::size_t channels) { return channels % 64 == 0 ? 64 : 32; }

inline std::size_t tiles_of(shape out, int batch) {
  return std::size_t(batch) * std::size_t((out.height + 1) / 2) * std::size_t((out.width + 1) / 2);
}

/// Goes through the tiles of a batch's outputs, from a given one on.
struct tile_walk {
  tile_walk(shape out, std::size_t first) : height(out.height), width(out.width) {
    std::size_t const columns = std::size_t(width + 1) / 2, rows = std::size_t(height + 1) / 2;
    sample = first / (rows * columns);
    row = int(first / columns % rows) * 2;
    column = int(first % columns) * 2;
  }
  void next() {
    if ((column += 2) < width) return;
    column = 0;
    if ((row += 2) < height) return;
    row = 0;
    ++sample;
  }

  int height, width;
  std::size_t sample;
  int row, column;  // of the tile's upper left place
};

/// A batch of maps, and where places that they do not have are instead.
template <class Half>
struct maps {
  Half* samples;
  shape extents;
  Half* outside;
};

/// Side x Side places of a map, from (row, column) on.
template <int Side, class Half>
class tile_of {
 public:
  tile_of(maps<Half> const& m, std::size_t sample, int row, int column)
      : row_(row), column_(column), height_(m.extents.height), width_(m.extents.width), outside_(m.outside) {
    inner.next = m.extents.channels;
    inner.line = width_ * inner.next;
    inner.first = m.samples + ((std::ptrdiff_t(sample) * height_ + row) * inner.line + column * inner.next);
  }
  bool inside() const {
    return row_ >= 0 && row_ + Side <= height_ && column_ >= 0 && column_ + Side <= width_;
  }
  edge_tile<Side, Half> edge() const {
    edge_tile<Side, Half> t;
    for (int a = 0; a < Side; ++a)
      for (int b = 0; b < Side; ++b) {
        int const i = row_ + a, j = column_ + b;
        t.all[std::size_t(a * Side + b)] =
            i >= 0 && i < height_ && j >= 0 && j < width_ ? inner(a, b) : outside_;
      }
    return t;
  }

  inner_tile<Half> inner;

 private:
  int row_, column_, height_, width_;
  Half* outside_;
};

/// y = f(x ∗ kernel + bias), of a kernel that is laid out. Some tiles at a time, as many as leave what is
/// worked in within a core's second cache.
inline void convolve(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, half const* x,
                     half const* factors, float const* bias, half* y) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             columns = columns_of(outputs);
  constexpr std::size_t held = 512 << 10, unit = 12;
  std::size_t const each = places * (inputs * sizeof(half) + columns * sizeof(float)),
                    most = std::clamp<std::size_t>(held / each / unit * unit, 2 * unit, 12 * unit),
                    all = tiles_of(g.out, batch);
  // A line more, so that the places of a tile are not in one set of a cache.
  std::size_t const plane = most * inputs + block, sums_plane = most * columns + 16;
  cpu.share(all, cpu.parts(all, 1), [&](std::size_t begin, std::size_t end, int t) {
    half* const in = halves(cpu, t, inputs_room, places * plane);
    half* const zeros = halves(cpu, t, small_room, inputs);
    float* const sums = cpu.room(t, sums_room, places * sums_plane).data();
    std::fill_n(zeros, inputs, half(0));
    maps<half const> const of_x{x, g.in, zeros};
    tile_walk from(g.out, begin);
    for (std::size_t first = begin; first < end; first += most) {
      std::size_t const some = std::min(most, end - first);
      tile_walk const here = from;
      for (std::size_t i = 0; i < some; ++i, from.next()) {
        tile_of<4, half const> const tile(of_x, from.sample, from.row - g.before.height,
                                          from.column - g.before.width);
        tile.inside() ? input_factors(tile.inner, inputs, in + i * inputs, plane)
                      : input_factors(tile.edge(), inputs, in + i * inputs, plane);
      }
      for (std::size_t c = 0; c < outputs; c += columns) {
        for (std::size_t p = 0; p < places; ++p)
          multiply(some, columns, {in + p * plane, inputs, 2},
                   factors + (c / columns * places + p) * inputs * columns, inputs / 2, sums + p * sums_plane,
                   columns, false);
        tile_walk to = here;
        for (std::size_t i = 0; i < some; ++i, to.next()) {
          tile_of<2, half> const tile({y + c, g.out, nullptr}, to.sample, to.row, to.column);
          auto const finish = [&](auto const& places_of_it) {
            finish_tile(sums + i * columns, sums_plane, columns, bias ? bias + c : nullptr,
                        f == activation::relu, places_of_it);
          };
          tile.inside() ? finish(tile.inner) : finish(tile.edge());
        }
      }
    }
  });
}

EDL_INLINE bool fits(conv_geometry const& g) {
  constexpr std::size_t most = 1 << 20;  // weights of a place
  auto const whole = [](int channels) { return channels % int(block) == 0; };
  auto const within = [](int before) { return before >= 0 && before <= 2; };
  return has_bfloat16_instructions() && g.narrow.in && g.narrow.out && g.kernel == extent{3} &&
         g.stride == extent{1} && g.groups == 1 && whole(g.in.channels) && whole(g.out.channels) &&
         within(g.before.height) && within(g.before.width) &&
         std::size_t(g.in.channels) * std::size_t(g.out.channels) <= most;
}

EDL_INLINE bool faster(conv_geometry const& g, bool of_kernel) {
  // Few channels take longer to transform than to multiply. Tiles of small maps are mostly border.
  return g.positions() >= 16 && (of_kernel || g.in.channels + g.out.channels > 64);
}

EDL_INLINE void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                        view<float> kernel, view<float> bias, std::span<float> y) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             columns = columns_of(outputs), plane = inputs * columns;
  half* const factors = halves(cpu, 0, factors_room, places * inputs * outputs);
  // A pair of input channels after the other, in the order of an input's factors.
  cpu.share(inputs / 2, cpu.parts(inputs / 2, 8), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t q = begin; q < end; ++q) {
      std::size_t const in_block = q % 16, channel = q / 16 * block + in_block % 8 * 4 + in_block / 8;
      float const* const from = kernel.data() + channel * outputs;
      for (std::size_t c = 0; c < outputs; c += 16)
        kernel_factors(from + c, from + 2 * outputs + c, std::ptrdiff_t(inputs * outputs),
                       factors + c / columns * places * plane + (q * columns + c % columns) * 2, plane);
    }
  });
  convolve(cpu, g, batch, f, halves(x.data()), factors, bias.empty() ? nullptr : bias.data(),
           halves(y.data()));
}

EDL_INLINE void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel,
                         view<float> dy, std::span<float> dx) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             columns = columns_of(inputs), plane = outputs * columns;
  half* const factors = halves(cpu, 0, factors_room, places * inputs * outputs);
  cpu.share(inputs / 16, cpu.parts(inputs / 16, 1), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t c = begin * 16; c < end * 16; c += 16)
      for (std::size_t o = 0; o < outputs; o += block)
        turned_kernel_factors(kernel.data() + c * outputs + o, outputs, std::ptrdiff_t(inputs * outputs),
                              factors + c / columns * places * plane + (o / 2 * columns + c % columns) * 2,
                              2 * columns, plane);
  });
  conv_geometry back = g;
  std::swap(back.in, back.out);
  back.before = {2 - g.before.height, 2 - g.before.width};
  convolve(cpu, back, batch, activation::none, halves(dy.data()), factors, nullptr, halves(dx.data()));
}

EDL_INLINE void to_kernel(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                          view<float> dy, std::span<float> dkernel, std::span<float> dbias) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             columns = columns_of(outputs), tiles = tiles_of(g.out, batch), pairs = (tiles + 1) / 2;
  // Sums are of so many channels at a time, and of so many pairs of tiles between two readings of them.
  constexpr std::size_t most = 128, least_share = 8;
  std::size_t const at_once = std::clamp<std::size_t>(outputs / 4, 48, 128), rows = std::min(most, inputs),
                    in_plane = at_once * rows * 2 + block, out_plane = at_once * outputs * 2 + block,
                    sums_plane = rows * outputs + 16;
  int const parts = cpu.parts(pairs, least_share);
  std::size_t const sums_of_thread = places * sums_plane;
  float* const all_sums = cpu.room(0, sums_room, std::size_t(parts) * sums_of_thread).data();
  // Sums of a piece's outputs, of all outputs, and zeros.
  auto const bias_of = [&](int t) {
    return cpu.room(t, small_room, 2 * outputs + std::max(inputs, outputs) / 2).data();
  };
  for (std::size_t channel = 0; channel < inputs; channel += most) {
    std::size_t const some_rows = std::min(most, inputs - channel);
    cpu.share(pairs, parts, [&](std::size_t begin, std::size_t end, int t) {
      half* const in = halves(cpu, t, inputs_room, places * in_plane);
      half* const out = halves(cpu, t, outputs_room, places * out_plane);
      float *const sums = all_sums + std::size_t(t) * sums_of_thread, *const piece = bias_of(t),
                   *const total = piece + outputs;
      std::fill_n(piece, 2 * outputs + std::max(inputs, outputs) / 2, 0.0f);
      half const* const zeros = halves(total + outputs);
      maps<half const> const of_x{halves(x.data()) + channel, g.in, zeros},
          of_dy{halves(dy.data()), g.out, zeros};
      tile_walk tile(g.out, 2 * begin);
      for (std::size_t first = begin; first < end; first += at_once) {
        std::size_t const some = std::min(at_once, end - first);
        for (std::size_t i = 0; i < some; ++i) {
          // A tile that is missing lies outside of the map, as a whole.
          auto const beyond = [&](std::size_t e) {
            return 2 * (first + i) + e < tiles ? 0 : g.in.height + g.out.height + 4;
          };
          tile_walk second = tile;
          second.next();
          auto const input = [&](tile_walk const& at, std::size_t e) {
            return tile_of<4, half const>(of_x, at.sample, at.row - g.before.height + beyond(e),
                                          at.column - g.before.width);
          };
          auto const output = [&](tile_walk const& at, std::size_t e) {
            return tile_of<2, half const>(of_dy, at.sample, at.row + beyond(e), at.column);
          };
          auto const a = input(tile, 0), b = input(second, 1);
          half* const to = in + i * some_rows * 2;
          a.inside() && b.inside() ? input_pair(a.inner, b.inner, some_rows, to, in_plane)
                                   : input_pair(a.edge(), b.edge(), some_rows, to, in_plane);
          auto const d = output(tile, 0), e = output(second, 1);
          for (std::size_t c = 0; c < outputs; c += columns) {
            half* const into = out + (c * at_once + i * columns) * 2;
            d.inside() && e.inside()
                ? output_pair(d.inner, e.inner, c, columns, into, out_plane, piece + c)
                : output_pair(d.edge(), e.edge(), c, columns, into, out_plane, piece + c);
          }
          tile = second;
          tile.next();
        }
        for (std::size_t p = 0; p < places; ++p)
          for (std::size_t c = 0; c < outputs; c += columns)
            multiply(some_rows, columns, {in + p * in_plane, 2, some_rows * 2},
                     out + p * out_plane + c * at_once * 2, some, sums + p * sums_plane + c, outputs,
                     first != begin);
        for (std::size_t c = 0; c < outputs; ++c) total[c] += std::exchange(piece[c], 0.0f);
      }
    });
    cpu.share(some_rows, cpu.parts(some_rows, 8), [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) {
        std::size_t const in_block = i % block,
                          to = channel + i - in_block + in_block % 16 * 2 + in_block / 16;
        for (std::size_t c = 0; c < outputs; c += block)
          finish_kernel(all_sums + i * outputs + c, parts, sums_of_thread, sums_plane,
                        dkernel.data() + to * outputs + c, inputs * outputs);
      }
    });
    if (channel > 0 || dbias.empty()) continue;
    for (std::size_t i = 0; i < outputs; ++i) {
      std::size_t const in_block = i % block;
      float& sum = dbias[i - in_block + in_block % 16 * 2 + in_block / 16];
      sum = 0;
      for (int t = 0; t < parts; ++t) sum += bias_of(t)[outputs + i];
    }
  }
}

}  // namespace edl::detail::winograd

#else

namespace edl::detail::winograd {

EDL_INLINE bool fits(conv_geometry const&) { return false; }
EDL_INLINE bool faster(conv_geometry const&, bool) { return false; }
EDL_INLINE void forward(basic_cpu<float>&, conv_geometry const&, int, activation, view<float>, view<float>,
                        view<float>, std::span<float>) {}
EDL_INLINE void to_input(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                         std::span<float>) {}
EDL_INLINE void to_kernel(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                          std::span<float>, std::span<float>) {}

}  // namespace edl::detail::winograd

#endif
