// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/convolution/tiled_maps.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/rows.hpp"
#include "edl/compute/device/cpu/tile_product.hpp"

/// The passes of convolutions (tiled_conv2d.hpp), whatever multiplies tiles: `Unit` is as tiled::unit.
namespace edl::detail::tiled {

/// Of a thread's rooms: packed samples on both sides, sums. Of the first one: the packed kernel, factors that
/// are rounded.
enum room_number : std::size_t { source_room, target_room, sums_room, kernel_room, left_room, right_room };

inline half const* halves(float const* x) { return reinterpret_cast<half const*>(x); }
inline half* halves(float* x) { return reinterpret_cast<half*>(x); }
inline half* halves(basic_cpu<float>& cpu, int thread, room_number room, std::size_t n) {
  return halves(cpu.room(thread, room, (n + 1) / 2).data());
}

/// 32 rows of 32 numbers: those of `count` rows and some columns, and zeros.
class padded_block {
 public:
  /// Where they are, `stride` numbers apart: in place, or in this block.
  half const* of(half const* from, std::size_t& stride, std::size_t count, std::size_t columns) {
    if (count == together && columns >= depth) return from;
    std::memset(room_, 0, sizeof room_);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(room_[i], from + i * stride, std::min(columns, depth) * sizeof(half));
    stride = depth;
    return room_[0];
  }

 private:
  alignas(64) half room_[together][depth];
};

/// The weights as right tiles, whose rows are what is summed over. They stand tap by tap, for one or two
/// blocks of 16 targets after the other.
template <class Unit>
void pack_kernel(basic_cpu<float>& cpu, conv_geometry const& g, bool turned, view<float> kernel, half* to) {
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             taps = std::size_t(g.kernel.height) * std::size_t(g.kernel.width);
  std::size_t const across = turned ? inputs : outputs, deep = blocks(turned ? outputs : inputs, depth),
                    down = blocks(inputs, depth);
  // Along the rows of 32 inputs, as memory likes it.
  cpu.share(taps * down, cpu.parts(kernel.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    constexpr std::size_t most = 16 * depth;
    alignas(64) half room[depth][most], both[2][tile];
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t o = 0; o < outputs; o += depth) {
        std::size_t const tap = i / down, c = i % down * depth, panel = (turned ? c : o) / depth,
                          k = (turned ? o : c) / depth, some = std::min(depth, inputs - c),
                          wide = across - panel * depth > rows ? 2 : 1;
        if (o % most == 0) {
          std::size_t const n = std::min(most, outputs - o);
          if (n % depth || some < depth) std::memset(room, 0, sizeof room);
          for (std::size_t r = 0; r < some; ++r)
            round_here(n, kernel.data() + (tap * inputs + c + r) * outputs + o, room[r]);
        }
        half const* const block = room[0] + o % most;
        half* const at = to + (panel * 2 * taps + tap * wide) * deep * tile + k * wide * tile;
        if (turned) {
          Unit::turn_pairs(block, most, at);
          if (wide > 1) Unit::turn_pairs(block + rows * most, most, at + tile);
        } else {
          Unit::pair_rows(block, most, both[0], tile);
          std::memcpy(at, both[0], wide * sizeof both[0]);
        }
      }
  });
}

/// y = f(x ∗ kernel + bias), or its transpose, of a kernel that is packed. Y is half or float.
template <class Unit, class Y>
void map_samples(basic_cpu<float>& cpu, mapping const& m, int batch, activation f, half const* x,
                 half const* kernel, float const* bias, Y* y) {
  auto const inputs = std::size_t(m.source.channels), outputs = std::size_t(m.target.channels),
             width = std::size_t(m.source.width), height = std::size_t(m.target.height),
             n = std::size_t(batch);
  std::size_t const deep = blocks(inputs, depth), row_size = width * deep * 2 * tile;
  constexpr std::size_t held = 768 << 10;
  int most = 1;
  while (most < m.target.height && std::size_t(m.down.most(2 * most)) * row_size * sizeof(half) <= held)
    most *= 2;
  int const slots = m.down.most(most);
  std::size_t const units = blocks(n, together) * height;
  cpu.share(units, cpu.parts(units, 1), [&](std::size_t begin, std::size_t end, int t) {
    typename Unit::session const tiles;
    kept_rows source{halves(cpu, t, source_room, std::size_t(slots) * row_size), row_size, slots};
    alignas(64) float sums[2 * rows][2 * rows];
    float const least = f == activation::relu ? 0.0f : -std::numeric_limits<float>::infinity();
    std::array<run_of_tiles, most_taps> runs;
    by_bands(begin, end, m.target.height, n, most, [&](band const& b) {
      std::size_t const left = b.samples > rows ? 2 : 1;
      if (b.fresh) source.packed = 0;
      source.fetch(m.down.of(b.first, b.last), m.down, [&](int row, half* to) {
        constexpr std::size_t few = 4;  // columns, whose tiles a core's first cache holds
        for (std::size_t i = 0; i < blocks(width, few) * left * rows; ++i) {
          std::size_t const s = i % (left * rows), first = i / (left * rows) * few;
          half const* const from = x + (b.sample + s) * m.source.size() + std::size_t(row) * width * inputs;
          for (std::size_t j = first; j < std::min(width, first + few); ++j) {
            if (!m.across.reads(int(j))) continue;
            half* at = to + ((j * deep * left + s / rows) * rows + s % rows) * depth;
            for (std::size_t c = 0; c < inputs; c += depth, at += left * tile) {
              std::size_t const some = s < b.samples ? std::min(depth, inputs - c) : 0;
              if (some == depth) {
                std::memcpy(at, from + j * inputs + c, depth * sizeof(half));
                continue;
              }
              std::memcpy(at, from + j * inputs + c, some * sizeof(half));
              std::fill_n(at + some, depth - some, half(0));
            }
          }
        }
      });
      for (std::size_t o = 0; o < outputs; o += depth) {
        std::size_t const right = outputs - o > rows ? 2 : 1;
        half const* const panel = kernel + o / rows * m.taps() * deep * tile;
        for (int i = b.first; i < b.last; ++i)
          for (int j = 0; j < m.target.width; ++j) {
            std::size_t count = 0;
            for (int p = 0; p < m.down.kernel; ++p) {
              int const row = m.down(i, p);
              if (row < 0) continue;
              for (int q = 0; q < m.across.kernel; ++q)
                if (int const column = m.across(j, q); column >= 0)
                  runs[count++] = {source[row] + std::size_t(column) * deep * left * tile,
                                   panel + std::size_t(p * m.across.kernel + q) * deep * right * tile, deep};
            }
            tile_product const product{
                {runs.data(), count}, left * tile, tile, right * tile, tile, sums[0], 2 * rows, false};
            left > 1
                ? right > 1 ? Unit::template multiply<2, 2>(product) : Unit::template multiply<2, 1>(product)
            : right > 1 ? Unit::template multiply<1, 2>(product)
                        : Unit::template multiply<1, 1>(product);
            std::size_t const place = std::size_t(i) * std::size_t(m.target.width) + std::size_t(j);
            Y* const to = y + b.sample * m.target.size() + place * outputs + o;
            if constexpr (std::same_as<Y, half>)
              Unit::finish(sums[0], 2 * rows, b.samples, right * rows, bias ? bias + o : nullptr,
                           f == activation::relu, to, m.target.size());
            else
              for (std::size_t s = 0; s < b.samples; ++s)
                for (std::size_t k = 0; k < right * rows; ++k) {
                  float const z = sums[s][k] + (bias ? bias[o + k] : 0.0f);
                  to[s * m.target.size() + k] = z < least ? least : z;
                }
          }
      }
    });
  });
}

/// Whether these functions compute it.
inline bool can_map(conv_geometry const& g) {
  constexpr std::size_t most = 1 << 23;  // weights
  auto const whole = [](int channels) { return channels % int(rows) == 0; };
  return g.narrow.in && g.narrow.out && g.groups == 1 && whole(g.in.channels) && whole(g.out.channels) &&
         std::size_t(g.kernel.height) * std::size_t(g.kernel.width) <= most_taps &&
         g.patch() * std::size_t(g.out.channels) <= most;
}

/// Either pass between samples, with the kernel packed for it.
template <class Unit, class Y>
void map_with(basic_cpu<float>& cpu, conv_geometry const& g, bool turned, int batch, activation f,
              half const* x, view<float> kernel, view<float> bias, Y* y) {
  mapping const m(g, turned);
  half* const packed = halves(cpu, 0, kernel_room,
                              m.taps() * blocks(std::size_t(m.source.channels), depth) *
                                  blocks(std::size_t(m.target.channels), rows) * tile);
  pack_kernel<Unit>(cpu, g, turned, kernel, packed);
  map_samples<Unit>(cpu, m, batch, f, x, packed, bias.empty() ? nullptr : bias.data(), y);
}

/// dkernel, and dbias unless it is empty.
template <class Unit>
void sum_kernel(basic_cpu<float>& cpu, conv_geometry const& g, int batch, half const* x, half const* dy,
                std::span<float> dkernel, std::span<float> dbias) {
  mapping const m(g, false);
  auto const inputs = std::size_t(g.in.channels), outputs = std::size_t(g.out.channels),
             width = std::size_t(g.in.width), wide = std::size_t(g.out.width), n = std::size_t(batch);
  std::size_t const c_blocks = 2 * blocks(inputs, depth), o_blocks = 2 * blocks(outputs, depth),
                    source_size = width * c_blocks * tile, target_size = wide * o_blocks * tile;
  constexpr std::size_t held = 768 << 10, enough = 64;
  int most = 1;
  while (most < g.out.height && most < int(most_taps) / 2 &&
         (std::size_t(m.down.most(2 * most)) * source_size + 2 * std::size_t(most) * target_size) *
                 sizeof(half) <=
             (std::size_t(most) * wide < enough ? 2 : 1) * held)
    most *= 2;
  int const slots = m.down.most(most);
  // A kernel that is larger than what it is summed of is shared itself, instead of the samples.
  bool const by_channels = dkernel.size() > n * g.in.size();
  std::size_t const bands = blocks(n, together) * std::size_t(g.out.height), panels = blocks(outputs, depth),
                    units = by_channels ? panels : bands;
  int const parts = cpu.parts(units, 1);
  auto const sums = [&](int t) {
    return t == 0 || by_channels ? dkernel.data() : cpu.room(t, sums_room, dkernel.size() + outputs).data();
  };
  auto const bias_sums = [&](int t) {
    return t == 0 || by_channels ? dbias.data() : sums(t) + dkernel.size();
  };
  cpu.share(units, parts, [&](std::size_t begin, std::size_t end, int t) {
    typename Unit::session const tiles;
    kept_rows source{halves(cpu, t, source_room, std::size_t(slots) * source_size), source_size, slots};
    half* const target = halves(cpu, t, target_room, std::size_t(most) * target_size);
    float *const all = sums(t), *const biases = bias_sums(t);
    std::size_t const first_output = by_channels ? begin * depth : 0,
                      last_output = by_channels ? std::min(end * depth, outputs) : outputs;
    if (by_channels) begin = 0, end = bands;
    if (!dbias.empty()) std::fill(biases + first_output, biases + last_output, 0.0f);
    std::array<run_of_tiles, most_taps> runs;
    padded_block padded;
    bool add = false;
    // Blocks of channels of a row one after the other, as pairs of samples or of channels.
    auto const pack = [&](band const& b, half const* from, shape s, int row, half* to, std::size_t first,
                          std::size_t channels, bool turned) {
      auto const all_of = std::size_t(s.channels), width_of = std::size_t(s.width);
      from += b.sample * s.size() + std::size_t(row) * width_of * all_of;
      for (std::size_t j = 0; j < width_of; ++j) {
        if (turned && !m.across.reads(int(j))) continue;
        for (std::size_t c = first; c < channels; c += depth) {
          std::size_t stride = s.size();
          half const* const block = padded.of(from + j * all_of + c, stride, b.samples, channels - c);
          half* const at = to + (c / rows * width_of + j) * tile;
          std::size_t const second = width_of * tile;
          if (!turned) {
            Unit::pair_rows(block, stride, at, second);
          } else {
            alignas(64) half both[2][tile];
            Unit::pair_rows(block, stride, both[0], tile);
            Unit::turn_pairs(both[0], depth, at);
            Unit::turn_pairs(both[1], depth, at + second);
          }
        }
      }
    };
    by_bands(begin, end, g.out.height, n, most, [&](band const& b) {
      if (b.fresh) source.packed = 0;
      source.fetch(m.down.of(b.first, b.last), m.down,
                   [&](int row, half* to) { pack(b, x, g.in, row, to, 0, inputs, true); });
      for (int i = b.first; i < b.last; ++i)
        pack(b, dy, g.out, i, target + std::size_t(i - b.first) * target_size, first_output, last_output,
             false);
      if (!dbias.empty())
        for (std::size_t s = 0; s < b.samples; ++s) {
          std::size_t const row = wide * outputs;
          half const* const from = dy + (b.sample + s) * g.out.size() + std::size_t(b.first) * row;
          for (std::size_t i = 0; i < std::size_t(b.last - b.first) * wide; ++i)
            for (std::size_t o = first_output; o < last_output; ++o)
              biases[o] += std::bit_cast<float>(std::uint32_t(from[i * outputs + o]) << 16);
        }
      for (std::size_t c = 0; c < inputs; c += depth)
        for (int p = 0; p < g.kernel.height; ++p)
          for (int q = 0; q < g.kernel.width; ++q) {
            // Columns of the target that this tap takes something to.
            int from = 0, to = g.out.width;
            while (from < to && m.across(from, q) < 0) ++from;
            while (from < to && m.across(to - 1, q) < 0) --to;
            for (std::size_t o = first_output; o < last_output; o += depth) {
              std::size_t count = 0;
              for (int i = b.first; i < b.last && from < to; ++i)
                if (int const row = m.down(i, p); row >= 0)
                  runs[count++] = {source[row] + (c / rows * width + std::size_t(m.across(from, q))) * tile,
                                   target + std::size_t(i - b.first) * target_size +
                                       (o / rows * wide + std::size_t(from)) * tile,
                                   std::size_t(to - from)};
              auto const tap = std::size_t(p * g.kernel.width + q);
              tile_product const product{
                  {runs.data(), count}, std::size_t(g.stride.width) * tile,     width * tile, tile,
                  wide * tile,          all + (tap * inputs + c) * outputs + o, outputs,      add};
              inputs - c > rows    ? outputs - o > rows ? Unit::template multiply<2, 2>(product)
                                                        : Unit::template multiply<2, 1>(product)
                 : outputs - o > rows ? Unit::template multiply<1, 2>(product)
                                   : Unit::template multiply<1, 1>(product);
            }
          }
      add = true;
    });
  });
  if (by_channels) return;
  detail::add_parts(cpu, parts, dkernel.size(), sums);
  if (!dbias.empty()) detail::add_parts(cpu, parts, outputs, bias_sums);
}

/// c = a · b (tiled_gemm.hpp).
template <class Unit>
bool multiply_with(basic_cpu<float>& cpu, std::size_t m, std::size_t n, std::size_t k, edl::matrix<float> a,
                   edl::matrix<float> b, float* c, std::size_t c_stride, bool narrow,
                   activation f = activation::none, view<float> bias = {}) {
  bool const of_kernel = a.transposed;
  std::size_t const all = of_kernel ? k : m,
                    inputs = of_kernel      ? m
                             : b.transposed ? n
                                            : k,
                    outputs = !of_kernel && b.transposed ? k : n;
  std::size_t apart = std::max<std::size_t>(blocks(all, together), 1);
  while (apart < all && all % apart != 0) ++apart;
  conv_geometry const g{
      {int(apart), 1, int(inputs)}, {int(apart), 1, int(outputs)}, 1, 1, 0, 1, {true, true}};
  bool const gaps = a.stride != (of_kernel ? m : k) || b.stride != (b.transposed ? k : n) || c_stride != n;
  std::size_t const batch = all / apart;  // with few, tiles stay empty
  if (gaps || batch < rows || !can_map(g) || (of_kernel ? b.transposed || narrow : b.narrow)) return false;
  auto const rounded = [&](room_number room, edl::matrix<float> const& x, std::size_t size) -> half const* {
    if (x.narrow) return halves(x.data);
    auto* const to = halves(cpu, 0, room, size);
    round_matrix(cpu, 1, size, x.data, size, to);
    return to;
  };
  half const* const left = rounded(left_room, a, m * k);
  if (of_kernel)
    sum_kernel<Unit>(cpu, g, int(batch), left, rounded(right_room, b, k * n), {c, m * n}, {});
  else if (narrow)
    map_with<Unit>(cpu, g, b.transposed, int(batch), f, left, {b.data, k * n}, bias, halves(c));
  else
    map_with<Unit>(cpu, g, b.transposed, int(batch), f, left, {b.data, k * n}, bias, c);
  return true;
}

}  // namespace edl::detail::tiled
