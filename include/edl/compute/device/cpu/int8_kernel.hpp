// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "edl/compute/device/buffer.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/int8_units.hpp"

namespace edl::detail {

/// See int8_forward.
inline float scale_of(std::int32_t greatest) {
  constexpr std::int32_t infinite = 0x7f800000;
  if (greatest >= infinite) return std::numeric_limits<float>::quiet_NaN();
  float const s = std::bit_cast<float>(greatest) / most_of_int8;
  return s == 0 ? 1 : s;
}

/// A convolution's kernel in quantised panels, those of one group of channels after those of another.
struct int8_kernel {
  std::int8_t* panels;
  float* scales;           // of outputs
  std::int32_t* too_much;  // 128 times the sums of the panels' columns
};

/// How it is laid out.
struct int8_layout {
  std::size_t groups, runs, length, outputs;  // runs of numbers that stand side by side in a sample, too

  explicit int8_layout(conv_geometry const& g)
      : groups(std::size_t(g.groups)),
        runs(std::size_t(g.kernel.height)),
        length(std::size_t(g.kernel.width) * std::size_t(g.in.channels / g.groups)),
        outputs(std::size_t(g.out.channels)) {}

  friend bool operator==(int8_layout const&, int8_layout const&) = default;

  std::size_t of_group() const { return outputs / groups; }
  std::size_t panels() const { return (of_group() + int8_panel::columns - 1) / int8_panel::columns; }
  std::size_t panel_size() const {
    return runs * ((length + int8_panel::depth - 1) / int8_panel::depth) * int8_panel::tile;
  }
  std::size_t columns() const { return groups * panels() * int8_panel::columns; }
  std::size_t floats() const {
    return groups * panels() * panel_size() / sizeof(float) + outputs + columns();
  }

  int8_kernel in(float* room) const {
    float* const scales = room + groups * panels() * panel_size() / sizeof(float);
    return {reinterpret_cast<std::int8_t*>(room), scales, reinterpret_cast<std::int32_t*>(scales + outputs)};
  }
};

/// Scales of the outputs, and columns of 64 of them at a time.
inline void quantise_kernel(basic_cpu<float>& cpu, int8_layout const& l, float const* kernel,
                            int8_kernel const& to) {
  constexpr std::size_t unit = 4 * int8_panel::columns;
  std::size_t const depth = l.runs * l.length, units = (l.outputs + unit - 1) / unit;
  cpu.share(units, cpu.parts(depth * l.outputs, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t first = begin * unit; first < std::min(end * unit, l.outputs); first += unit) {
      std::size_t const n = std::min(unit, l.outputs - first);
      std::int32_t most[unit] = {};
      for (std::size_t i = 0; i < depth; ++i)
        for (std::size_t k = 0; k < n; ++k)
          most[k] = std::max(most[k], int8_plain::greatest(1, kernel + i * l.outputs + first + k));
      for (std::size_t k = 0; k < n; ++k) to.scales[first + k] = scale_of(most[k]);
    }
  });
  std::size_t const all = l.groups * l.panels();
  cpu.share(all, cpu.parts(depth * l.outputs, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      std::size_t const at = i % l.panels() * int8_panel::columns, first = i / l.panels() * l.of_group() + at,
                        n = std::min(int8_panel::columns, l.of_group() - at);
      std::int8_t* const panel = to.panels + i * l.panel_size();
      std::int32_t sums[int8_panel::columns]{};
      float inverse[int8_panel::columns];
      for (std::size_t j = 0; j < n; ++j) inverse[j] = 1 / to.scales[first + j];
      std::memset(panel, 0, l.panel_size());
      for (std::size_t k = 0; k < depth; ++k) {
        std::size_t const of_run = k % l.length;
        std::int8_t* const line =
            panel + k / l.length * (l.panel_size() / l.runs) + of_run / 4 * int8_panel::line + of_run % 4;
        for (std::size_t j = 0; j < n; ++j) {
          line[4 * j] = quantised(kernel[k * l.outputs + first + j], inverse[j]);
          sums[j] += 128 * line[4 * j];
        }
      }
      std::copy_n(sums, int8_panel::columns, to.too_much + i * int8_panel::columns);
    }
  });
}

/// Quantised kernels, each as it was when the device was last told that kernels were written.
struct kept_kernels final : kernel_store {
  struct one {
    float const* weights;
    int8_layout layout;
    aligned_buffer<float> room;
    std::uint64_t written = 0;
  };
  std::deque<one> all;

  one& find(float const* weights, int8_layout const& l) {
    for (one& k : all)
      if (k.weights == weights && k.layout == l) return k;
    return all.emplace_back(one{weights, l, aligned_buffer<float>(l.floats())});
  }
};

/// In a room of the first thread, or kept since the device was told of the kernel.
inline int8_kernel quantised_kernel(basic_cpu<float>& cpu, int8_layout const& l, std::size_t room,
                                    float const* kernel) {
  if (cpu.written() == 0) {
    int8_kernel const k = l.in(cpu.room(0, room, l.floats()).data());
    quantise_kernel(cpu, l, kernel, k);
    return k;
  }
  if (!cpu.quantised()) cpu.quantised() = std::make_unique<kept_kernels>();
  auto& kept = static_cast<kept_kernels&>(*cpu.quantised()).find(kernel, l);
  int8_kernel const k = l.in(kept.room.span().data());
  if (std::exchange(kept.written, cpu.written()) != cpu.written()) quantise_kernel(cpu, l, kernel, k);
  return k;
}

}  // namespace edl::detail
