// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>

#include "edl/core/inline.hpp"
#include "edl/data/augment.hpp"

namespace edl {

EDL_INLINE void random_crop::operator()(shape s, std::span<float> picture,
                                        random_stream const& random) const {
  auto const places = std::uint64_t(2 * padding + 1);
  int const down = std::clamp(int(random.below(places, 0)) - padding, -s.height, s.height),
            right = std::clamp(int(random.below(places, 1)) - padding, -s.width, s.width);
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
  // A row is read before it is written over.
  if (down > 0)
    for (int i = s.height - 1; i >= 0; --i) move(i);
  else
    for (int i = 0; i < s.height; ++i) move(i);
}

EDL_INLINE void random_flip::operator()(shape s, std::span<float> picture,
                                        random_stream const& random) const {
  if (random.bits(0) & 1) return;
  auto const c = std::size_t(s.channels), w = std::size_t(s.width);
  for (std::size_t i = 0; i < std::size_t(s.height); ++i) {
    float* const row = picture.data() + i * w * c;
    for (std::size_t j = 0; j < w / 2; ++j)
      std::swap_ranges(row + j * c, row + (j + 1) * c, row + (w - 1 - j) * c);
  }
}

EDL_INLINE void cutout::operator()(shape s, std::span<float> picture, random_stream const& random) const {
  int const top = int(random.below(std::uint64_t(s.height), 0)) - size / 2,
            left = int(random.below(std::uint64_t(s.width), 1)) - size / 2;
  int const from = std::clamp(left, 0, s.width), to = std::clamp(left + size, from, s.width);
  for (int i = std::max(top, 0); i < std::min(top + size, s.height); ++i) {
    float* const row = picture.data() + std::ptrdiff_t(i) * s.width * s.channels;
    std::fill(row + std::ptrdiff_t(from) * s.channels, row + std::ptrdiff_t(to) * s.channels, 0.0f);
  }
}

}  // namespace edl
