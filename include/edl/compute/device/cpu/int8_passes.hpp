// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/int8_kernel.hpp"

/// The pass of int8.hpp, whatever multiplies blocks: `Unit` is as int8_plain.
namespace edl::detail {

/// Samples as they are multiplied: whole numbers, maps with borders of zeros, one for each group of channels.
/// Numbers that a row of a kernel takes stand side by side. So places of a result are rows of a left factor
/// that overlap. With strides of 1 all places of all samples, and those in the borders, are one line of them.
struct int8_map {
  std::size_t channels, width, height;
  std::size_t row;  // from a place to the next
  bool one_line;

  explicit int8_map(conv_geometry const& g)
      : channels(std::size_t(g.in.channels / g.groups)),
        width(extent_of(g.in.width, g.out.width, g.kernel.width, g.stride.width, g.before.width)),
        height(extent_of(g.in.height, g.out.height, g.kernel.height, g.stride.height, g.before.height)),
        row(std::size_t(g.stride.width) * channels),
        one_line(g.stride == extent{1}) {}

  std::size_t size() const { return channels * width * height; }

  /// Numbers behind the last one that a unit may read.
  std::size_t beyond() const { return int8_block::most_rows * row + int8_panel::depth; }

 private:
  static std::size_t extent_of(int in, int out, int kernel, int stride, int before) {
    return std::size_t(std::max(before + in, (out - 1) * stride + kernel));
  }
};

/// One sample, into the map of its first group; the others are `of_group` numbers further. Returns its scale.
template <class Unit>
float quantise_sample(conv_geometry const& g, int8_map const& m, float const* x, std::int8_t* to,
                      std::size_t of_group) {
  std::size_t const n = g.in.size(), width = std::size_t(g.in.width), groups = std::size_t(g.groups);
  float const scale = scale_of(Unit::greatest(n, x)), inverse = 1 / scale;
  bool const border = m.size() * groups != n;
  for (std::size_t group = 0; group < groups; ++group) {
    std::int8_t* map = to + group * of_group;
    if (border) std::memset(map, 0, m.size());
    map += (std::size_t(g.before.height) * m.width + std::size_t(g.before.width)) * m.channels;
    for (int r = 0; r < g.in.height; ++r, map += m.width * m.channels) {
      float const* const from = x + std::size_t(r) * width * std::size_t(g.in.channels) + group * m.channels;
      if (groups == 1) {
        Unit::quantise(width * m.channels, from, inverse, map);
        continue;
      }
      for (std::size_t j = 0; j < width; ++j)
        Unit::quantise(m.channels, from + j * std::size_t(g.in.channels), inverse, map + j * m.channels);
    }
  }
  return scale;
}

/// Some samples, quantised, and where their results go.
struct int8_samples {
  std::int8_t const* maps;
  float const* scales;
  std::size_t count;
  float* y;
};

/// Results of the panels [first, last) of all groups.
template <class Unit>
void multiply_int8(conv_geometry const& g, int8_map const& m, int8_layout const& l, int8_kernel const& k,
                   int8_samples const& s, std::size_t first, std::size_t last, activation f,
                   float const* bias) {
  auto const wide = std::size_t(g.out.width), high = std::size_t(g.out.height);
  // A line's places, borders between them included, are `pitch` to a row of the map, `tall` rows to a sample.
  std::size_t const pitch = m.one_line ? m.width : wide, tall = m.one_line ? m.height : high,
                    lines = m.one_line ? 1 : s.count * high,
                    length =
                        m.one_line ? s.count * tall * pitch - (tall - high) * pitch - (pitch - wide) : wide;
  alignas(64) std::int32_t sums[int8_block::most_rows * int8_block::stride];
  typename Unit::session const tiles;
  while (first < last) {
    std::size_t const group = first / l.panels(), panel = first % l.panels(),
                      some = std::min({int8_block::most_panels, last - first, l.panels() - panel}),
                      at = panel * int8_panel::columns,
                      n = std::min(some * int8_panel::columns, l.of_group() - at),
                      output = group * l.of_group() + at;
    std::int8_t const* const maps = s.maps + group * s.count * m.size();
    for (std::size_t line = 0; line < lines; ++line) {
      std::size_t sample = m.one_line ? 0 : line / high, row = m.one_line ? 0 : line % high, column = 0;
      std::int8_t const* left =
          maps + (sample * m.height + row * std::size_t(g.stride.height)) * m.width * m.channels;
      for (std::size_t v = 0; v < length; v += int8_block::most_rows, left += int8_block::most_rows * m.row) {
        int8_block const block{left,
                               k.panels + first * l.panel_size(),
                               l.runs,
                               l.length,
                               m.width * m.channels,
                               m.row,
                               l.panel_size(),
                               std::min(int8_block::most_rows, length - v),
                               some,
                               k.too_much + first * int8_panel::columns,
                               sums};
        Unit::multiply(block);
        float* to[int8_block::most_rows];
        float const* scales[int8_block::most_rows];
        for (std::size_t i = 0; i < block.rows; ++i) {
          to[i] = column < wide && row < high
                      ? s.y + ((sample * high + row) * wide + column) * l.outputs + output
                      : nullptr;
          scales[i] = s.scales + sample;
          if (++column == pitch) {
            column = 0;
            if (++row == tall) row = 0, ++sample;
          }
        }
        Unit::finish({block.rows, n, sums, to, scales, k.scales + output, bias ? bias + output : nullptr,
                      f == activation::relu});
      }
    }
    first += some;
  }
}

template <class Unit>
void int8_forward_by(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                     view<float> kernel, view<float> bias, std::span<float> y) {
  enum : std::size_t { map_room, scale_room, kernel_room };
  int8_map const m(g);
  int8_layout const l(g);
  int8_kernel const k = quantised_kernel(cpu, l, kernel_room, kernel.data());
  auto const n = std::size_t(batch), groups = std::size_t(g.groups), of_sample = groups * m.size();
  float const* const biases = bias.empty() ? nullptr : bias.data();
  std::size_t const panels = groups * l.panels();
  if (n == 0) return;
  auto const take = [&](int t, std::size_t begin, std::size_t count) {
    float* const scales = cpu.room(t, scale_room, count).data();
    auto* const maps = reinterpret_cast<std::int8_t*>(
        cpu.room(t, map_room, (count * of_sample + m.beyond()) / sizeof(float) + 1).data());
    for (std::size_t i = 0; i < count; ++i)
      scales[i] = quantise_sample<Unit>(g, m, x.data() + (begin + i) * g.in.size(), maps + i * m.size(),
                                        count * m.size());
    return int8_samples{maps, scales, count, y.data() + begin * g.out.size()};
  };
  // Where samples are fewer than fill the threads' tiles, outputs are shared.
  std::size_t const fewest = g.positions() == 1 ? int8_panel::columns : 1;
  if (n < fewest * std::size_t(cpu.threads())) {
    int8_samples const all = take(0, 0, n);
    cpu.share(panels, cpu.parts(n * g.positions() * g.patch() * l.outputs, 128 * 1024),
              [&](std::size_t begin, std::size_t end, int) {
                multiply_int8<Unit>(g, m, l, k, all, begin, end, f, biases);
              });
    return;
  }
  constexpr std::size_t held = 512 << 10;  // what stays in a core's second cache beside a kernel's panels
  std::size_t const most = std::max<std::size_t>(held / of_sample, 1);
  cpu.share(n, cpu.parts(n, fewest), [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t some; begin < end; begin += some) {
      some = std::min(most, end - begin);
      multiply_int8<Unit>(g, m, l, k, take(t, begin, some), 0, panels, f, biases);
    }
  });
}

}  // namespace edl::detail
