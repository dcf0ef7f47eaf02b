// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/convolution/winograd_wide.hpp"
#include "edl/core/inline.hpp"

#ifdef __x86_64__

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/convolution/winograd_wide_tiles.hpp"

namespace edl::detail::winograd_wide {

/// Of a thread's rooms: transformed inputs and sums. A kernel's factors are in a room of the first thread.
enum room_number : std::size_t { inputs_room, sums_room, factors_room };

/// Kernels' factors, each as it was when the device was last told that kernels were written.
struct kept_factors final : kernel_store {
  struct one {
    float const* kernel;
    aligned_buffer<float> factors;
    std::uint64_t written = 0;
  };
  std::vector<one> all;
};

/// Columns of one product.
inline std::size_t columns_of(std::size_t channels) { return channels % 32 == 0 ? 32 : 16; }

/// Tiles of a map's rows, or columns.
inline std::size_t tiles_of(int extent) { return (std::size_t(extent) + results - 1) / results; }

inline std::size_t tiles_of(conv_geometry const& g, int batch) {
  return std::size_t(batch) * tiles_of(g.out.height) * tiles_of(g.out.width);
}

/// Numbers of a kernel's factors, and how many are few.
inline std::size_t factors_size(conv_geometry const& g) {
  return places * std::size_t(g.in.channels) * std::size_t(g.out.channels);
}
constexpr std::size_t small_factors = places * 128 * 128;

/// Some panels of `columns` filters of a kernel, and how it lies: for a gradient its last tap comes first,
/// and its filters are what is summed over.
struct panels_of_kernel {
  float const* kernel;
  bool turned;
  std::size_t first, last;
};

/// Panels one after the other. A panel has a place after the other, and in it an input channel after the
/// other.
inline void lay_out(basic_cpu<float>& cpu, conv_geometry const& g, panels_of_kernel const& p,
                    float* factors) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             columns = columns_of(outputs), plane = inputs * columns, size = inputs * outputs;
  auto const to = [&](std::size_t input, std::size_t filter) {
    std::size_t const c = filter - p.first * columns;
    return factors + c / columns * places * plane + input * columns + c % columns;
  };
  cpu.share(inputs / block, cpu.parts(inputs / block, 1), [&](std::size_t begin, std::size_t end, int) {
    constexpr std::size_t taps = 9;
    for (std::size_t i = begin * block; i < end * block; i += block)
      for (std::size_t c = p.first * columns; c < p.last * columns; c += block)
        if (p.turned) {
          float square[taps][block][block];
          for (std::size_t tap = 0; tap < taps; ++tap)
            for (std::size_t column = 0; column < block; ++column)
              for (std::size_t row = 0; row < block; ++row)
                square[tap][row][column] =
                    p.kernel[(taps - 1 - tap) * size + (c + column) * inputs + i + row];
          for (std::size_t row = 0; row < block; ++row)
            kernel_factors(square[0][row], block * block, to(i + row, c), plane);
        } else {
          for (std::size_t row = 0; row < block; ++row)
            kernel_factors(p.kernel + (i + row) * outputs + c, size, to(i + row, c), plane);
        }
  });
}

/// All factors of a kernel as they are kept since the device was told of it. Null where they are not.
inline float const* kept_factors_of(basic_cpu<float>& cpu, conv_geometry const& g, int batch,
                                    float const* kernel) {
  std::size_t const size = factors_size(g);
  // Large ones are little of the work of a large batch, and would take the room of those that are not.
  constexpr int few = 4;
  if (!cpu.keeps() || (size > small_factors && batch > few)) return nullptr;
  if (!cpu.transformed()) cpu.transformed() = std::make_unique<kept_factors>();
  auto& all = static_cast<kept_factors&>(*cpu.transformed()).all;
  auto at = std::ranges::find_if(
      all, [&](auto const& k) { return k.kernel == kernel && k.factors.size() == size; });
  if (at == all.end() && cpu.keeps_more(size)) at = all.insert(at, {kernel, aligned_buffer<float>(size)});
  if (at == all.end()) return nullptr;
  float* const kept = at->factors.span().data();
  if (std::exchange(at->written, cpu.written()) != cpu.written())
    lay_out(cpu, g, {kernel, false, 0, std::size_t(g.out.channels) / columns_of(std::size_t(g.out.channels))},
            kept);
  return kept;
}

/// A share of the tiles of a batch and of the panels of a kernel. Some tiles at a time, as many as leave what
/// is worked in within a core's second cache.
class share_of_work {
 public:
  share_of_work(conv_geometry const& g, activation f, float const* x, float const* bias, float* y)
      : g_(g), relu_(f == activation::relu), x_(x), bias_(bias), y_(y) {}

  /// `factors` are those of the panels from number `laid` on.
  void run(basic_cpu<float>& cpu, int thread, std::size_t begin, std::size_t end, std::size_t first_panel,
           std::size_t last_panel, float const* factors, std::size_t laid) const {
    constexpr std::size_t held = 512 << 10, unit = 12;
    std::size_t const each = places * (inputs_ + columns_) * sizeof(float),
                      most = std::clamp<std::size_t>(held / each / unit * unit, unit, 12 * unit);
    // A line more, so that the places of a tile are not in one set of a cache.
    std::size_t const plane = std::min(most, end - begin) * inputs_ + block,
                      sums_plane = std::min(most, end - begin) * columns_ + block;
    float *const in = cpu.room(thread, inputs_room, places * plane).data(),
                 *const sums = cpu.room(thread, sums_room, places * sums_plane).data();
    for (std::size_t first = begin; first < end; first += most) {
      std::size_t const some = std::min(most, end - first);
      for (std::size_t i = 0; i < some; ++i) bring(first + i, in + i * inputs_, plane);
      for (std::size_t panel = first_panel; panel < last_panel; ++panel) {
        for (std::size_t p = 0; p < places; ++p)
          (columns_ == 32 ? multiply<2>
                          : multiply<1>)(some, in + p * plane, inputs_,
                                         factors + ((panel - laid) * places + p) * inputs_ * columns_,
                                         inputs_, sums + p * sums_plane);
        for (std::size_t i = 0; i < some; ++i)
          finish(first + i, panel * columns_, sums + i * columns_, sums_plane);
      }
    }
  }

  std::size_t panels() const { return std::size_t(g_.out.channels) / columns_; }

 private:
  /// A tile's sample, and its upper left place.
  struct at {
    std::size_t sample;
    int row, column;
  };
  at place_of(std::size_t tile) const {
    std::size_t const of_sample = tiles_of(g_, 1), across = tiles_of(g_.out.width), within = tile % of_sample;
    return {tile / of_sample, int(within / across * results), int(within % across * results)};
  }

  void bring(std::size_t tile, float* to, std::size_t plane) const {
    auto const [sample, y_row, y_column] = place_of(tile);
    int const row = y_row - g_.before.height, column = y_column - g_.before.width, height = g_.in.height,
              width = g_.in.width;
    float const* const map = x_ + sample * g_.in.size();
    auto const place = [&](int i, int j) {
      return map + (std::ptrdiff_t(i) * width + j) * std::ptrdiff_t(inputs_);
    };
    if (row >= 0 && column >= 0 && row + int(side) <= height && column + int(side) <= width)
      return inner_factors(place(row, column), std::size_t(width) * inputs_, inputs_, inputs_, to, plane);
    std::array<float const*, places> all{};
    for (int i = 0; i < int(side); ++i)
      for (int j = 0; j < int(side); ++j)
        if (row + i >= 0 && row + i < height && column + j >= 0 && column + j < width)
          all[std::size_t(i) * side + std::size_t(j)] = place(row + i, column + j);
    edge_factors(all, inputs_, to, plane);
  }

  void finish(std::size_t tile, std::size_t channel, float const* sums, std::size_t plane) const {
    auto const [sample, row, column] = place_of(tile);
    auto const outputs = std::size_t(g_.out.channels), width = std::size_t(g_.out.width);
    auto const within = [](int from, int all) { return std::min(results, std::size_t(all - from)); };
    finish_tile(
        sums, plane, columns_, bias_ ? bias_ + channel : nullptr, relu_,
        y_ + sample * g_.out.size() + (std::size_t(row) * width + std::size_t(column)) * outputs + channel,
        width * outputs, outputs, within(row, g_.out.height), within(column, g_.out.width));
  }

  conv_geometry g_;
  bool relu_;
  float const *x_, *bias_;
  float* y_;
  std::size_t inputs_ = std::size_t(g_.in.channels), columns_ = columns_of(std::size_t(g_.out.channels));
};

EDL_INLINE bool fits(conv_geometry const& g) {
  constexpr std::size_t most = 1 << 18;  // weights of a place
  auto const whole = [](int channels) { return channels % int(block) == 0; };
  auto const within = [](int before) { return before >= 0 && before <= 2; };
  return __builtin_cpu_supports("avx512f") && !g.narrow.any() && g.kernel == extent{3} &&
         g.stride == extent{1} && g.groups == 1 && whole(g.in.channels) && whole(g.out.channels) &&
         within(g.before.height) && within(g.before.width) &&
         std::size_t(g.in.channels) * std::size_t(g.out.channels) <= most;
}

EDL_INLINE bool faster(conv_geometry const& g, int batch) {
  // Of many channels factors take so much memory that few tiles are computed while they are read.
  constexpr std::size_t enough = 24;
  bool const small = factors_size(g) <= small_factors;
  return g.positions() >= 16 && (tiles_of(g, batch) >= enough || (small && g.positions() >= 36));
}

/// y = f(x ∗ kernel + bias), with all factors of the kernel, or as many panels of them at a time as do not
/// take much memory.
inline void convolve(basic_cpu<float>& cpu, conv_geometry const& g, int batch, share_of_work const& work,
                     float const* kept, float const* kernel, bool turned) {
  constexpr std::size_t held = (8 << 20) / sizeof(float), least = 12;
  std::size_t const tiles = tiles_of(g, batch), panels = work.panels(), of_panel = factors_size(g) / panels,
                    most = kept ? panels : std::clamp<std::size_t>(held / of_panel, 1, panels);
  for (std::size_t first = 0; first < panels; first += most) {
    std::size_t const last = std::min(first + most, panels);
    float const* factors = kept;
    if (!kept) {
      float* const room = cpu.room(0, factors_room, (last - first) * of_panel).data();
      lay_out(cpu, g, {kernel, turned, first, last}, room);
      factors = room;
    }
    // Threads share tiles, or panels where tiles are few: then each transforms all tiles.
    int const by_tiles = cpu.parts(tiles, least), by_panels = cpu.parts(last - first, 1);
    if (by_panels > by_tiles)
      cpu.share(last - first, by_panels, [&](std::size_t begin, std::size_t end, int t) {
        work.run(cpu, t, 0, tiles, first + begin, first + end, factors, first);
      });
    else
      cpu.share(tiles, by_tiles, [&](std::size_t begin, std::size_t end, int t) {
        work.run(cpu, t, begin, end, first, last, factors, first);
      });
  }
}

EDL_INLINE void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                        view<float> kernel, view<float> bias, std::span<float> y) {
  share_of_work const work(g, f, x.data(), bias.empty() ? nullptr : bias.data(), y.data());
  convolve(cpu, g, batch, work, kept_factors_of(cpu, g, batch, kernel.data()), kernel.data(), false);
}

EDL_INLINE void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel,
                         view<float> dy, std::span<float> dx) {
  conv_geometry back = g;
  std::swap(back.in, back.out);
  back.before = {2 - g.before.height, 2 - g.before.width};
  convolve(cpu, back, batch, {back, activation::none, dy.data(), nullptr, dx.data()}, nullptr, kernel.data(),
           true);
}

}  // namespace edl::detail::winograd_wide

#else

namespace edl::detail::winograd_wide {

EDL_INLINE bool fits(conv_geometry const&) { return false; }
EDL_INLINE bool faster(conv_geometry const&, int) { return false; }
EDL_INLINE void forward(basic_cpu<float>&, conv_geometry const&, int, activation, view<float>, view<float>,
                        view<float>, std::span<float>) {}
EDL_INLINE void to_input(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                         std::span<float>) {}

}  // namespace edl::detail::winograd_wide

#endif
