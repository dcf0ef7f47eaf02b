// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "edl/compute/device/placement.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE void place(shape s, view<float> from, placement const& how, std::span<float> to) {
  auto const c = std::ptrdiff_t(s.channels), width = s.width * c;
  // Columns [begin, end) copy a contiguous run of the source; the others are looked up one by one.
  int const begin = how.mirrored ? 0 : std::clamp(how.right, 0, s.width),
            end = how.mirrored ? 0 : std::clamp(s.width + how.right, begin, s.width);
  for (int i = 0; i < s.height; ++i) {
    float* const row = to.data() + i * width;
    int const a = how.row(s, i);
    float const* const source = from.data() + a * width;
    auto const one = [&](int j) {
      if (int const b = how.column(s, j); b < 0)
        std::fill_n(row + j * c, c, 0.0f);
      else
        std::copy_n(source + b * c, c, row + j * c);
    };
    if (a < 0) {
      std::fill_n(row, width, 0.0f);
    } else {
      for (int j = 0; j < begin; ++j) one(j);
      if (begin < end) std::copy_n(source + (begin - how.right) * c, (end - begin) * c, row + begin * c);
      for (int j = end; j < s.width; ++j) one(j);
    }
    if (how.jittered())
      for (float* v = row; v < row + width; ++v) *v = std::fma(*v, how.contrast, how.brightness);
    if (i < how.hole_top || i >= how.hole_top + how.hole_size) continue;
    int const left = std::clamp(how.hole_left, 0, s.width),
              right = std::clamp(how.hole_left + how.hole_size, left, s.width);
    std::fill(row + left * c, row + right * c, 0.0f);
  }
}

}  // namespace edl
