// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "edl/compute/data/augment.hpp"
#include "edl/core/inline.hpp"

namespace edl {

namespace detail {

/// A shift down and to the right, each from −padding to padding.
struct moved {
  moved(int padding, random_stream const& random)
      : down(int(random.below(std::uint64_t(2 * padding + 1), 0)) - padding),
        right(int(random.below(std::uint64_t(2 * padding + 1), 1)) - padding) {}
  int down, right;
};

}  // namespace detail

EDL_INLINE void random_crop::place(shape, record_stream const& random, placement& of) const {
  detail::moved const shift(padding, random);
  of.down = shift.down, of.right = shift.right, of.at = border;
}

EDL_INLINE void random_crop::operator()(shape s, std::span<float> picture,
                                        record_stream const& random) const {
  if (border != edl::border::zeros) {
    placement of;
    place(s, random, of);
    std::vector<float> const before(picture.begin(), picture.end());
    edl::place(s, before, of, picture);
    return;
  }
  // Shifts in place, without memory for another picture.
  detail::moved const by(padding, random);
  int const down = std::clamp(by.down, -s.height, s.height), right = std::clamp(by.right, -s.width, s.width);
  std::ptrdiff_t const row = std::ptrdiff_t(s.width) * s.channels, shift = std::ptrdiff_t(right) * s.channels;
  auto const move = [&](int to) {
    float* const into = picture.data() + to * row;
    int const from = to - down;
    if (from < 0 || from >= s.height) {
      std::fill_n(into, row, 0.0f);
      return;
    }
    float* const source = picture.data() + from * row;
    std::ptrdiff_t const kept = row - std::abs(shift);
    if (shift >= 0) {
      std::copy_backward(source, source + kept, into + row);
      std::fill_n(into, shift, 0.0f);
    } else {
      std::copy(source - shift, source + row, into);
      std::fill_n(into + kept, -shift, 0.0f);
    }
  };
  // Each row is read before it is overwritten.
  if (down > 0)
    for (int i = s.height - 1; i >= 0; --i) move(i);
  else
    for (int i = 0; i < s.height; ++i) move(i);
}

EDL_INLINE void random_flip::place(shape, record_stream const& random, placement& of) const {
  of.mirrored = alternating ? (random.own.bits(0) ^ random.epoch) & 1 : ~random.bits(0) & 1;
}

EDL_INLINE void random_flip::operator()(shape s, std::span<float> picture,
                                        record_stream const& random) const {
  placement of;
  place(s, random, of);
  if (!of.mirrored) return;
  auto const c = std::size_t(s.channels), w = std::size_t(s.width);
  for (std::size_t i = 0; i < std::size_t(s.height); ++i) {
    float* const row = picture.data() + i * w * c;
    for (std::size_t j = 0; j < w / 2; ++j)
      std::swap_ranges(row + j * c, row + (j + 1) * c, row + (w - 1 - j) * c);
  }
}

EDL_INLINE void random_jitter::place(shape, record_stream const& random, placement& of) const {
  of.contrast = 1 + contrast * (2 * random.uniform(0) - 1);
  of.brightness = brightness * (2 * random.uniform(1) - 1);
}

EDL_INLINE void random_jitter::operator()(shape s, std::span<float> picture,
                                          record_stream const& random) const {
  placement of;
  place(s, random, of);
  for (float& v : picture) v = std::fma(v, of.contrast, of.brightness);
}

EDL_INLINE void cutout::place(shape s, record_stream const& random, placement& of) const {
  of.hole_top = int(random.below(std::uint64_t(s.height), 0)) - size / 2;
  of.hole_left = int(random.below(std::uint64_t(s.width), 1)) - size / 2;
  of.hole_size = size;
}

EDL_INLINE void cutout::operator()(shape s, std::span<float> picture, record_stream const& random) const {
  placement of;
  place(s, random, of);
  int const top = of.hole_top, left = of.hole_left;
  int const from = std::clamp(left, 0, s.width), to = std::clamp(left + size, from, s.width);
  for (int i = std::max(top, 0); i < std::min(top + size, s.height); ++i) {
    float* const row = picture.data() + std::ptrdiff_t(i) * s.width * s.channels;
    std::fill(row + std::ptrdiff_t(from) * s.channels, row + std::ptrdiff_t(to) * s.channels, 0.0f);
  }
}

}  // namespace edl
