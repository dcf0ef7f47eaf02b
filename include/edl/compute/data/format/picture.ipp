// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "edl/compute/data/format/picture.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl {
namespace data::detail {

/// What each place of a resized axis is made of: neighbours, each with a weight.
struct resized_axis {
  std::vector<std::size_t> first, begin;  // the first neighbour; its weight's place
  std::vector<float> weights;

  resized_axis(int from, int to) {
    double const scale = double(from) / to;
    for (int i = 0; i < to; ++i) {
      begin.push_back(weights.size());
      if (to < from) {
        double const low = i * scale, high = std::min<double>((i + 1) * scale, from);
        first.push_back(std::size_t(low));
        for (int j = int(low); j < from && j < high; ++j) {
          double const part = std::min<double>(high, j + 1) - std::max<double>(low, j);
          weights.push_back(float(part / (high - low)));
        }
      } else {
        double const at = std::clamp((i + 0.5) * scale - 0.5, 0.0, double(from - 1)), whole = std::floor(at);
        first.push_back(std::size_t(whole));
        weights.push_back(float(1 - (at - whole)));
        if (at > whole) weights.push_back(float(at - whole));
      }
    }
    begin.push_back(weights.size());
  }

  /// Adds up, for place `i`, what `of(neighbour)` points to: `n` values each.
  template <class Of>
  void put(std::size_t i, Of&& of, std::size_t n, float* into) const {
    std::fill_n(into, n, 0.0f);
    for (std::size_t w = begin[i]; w < begin[i + 1]; ++w) {
      float const* const from = of(first[i] + w - begin[i]);
      for (std::size_t k = 0; k < n; ++k) into[k] += weights[w] * from[k];
    }
  }
};

}  // namespace data::detail

EDL_INLINE picture picture_of(example const& record, std::string_view name) {
  picture p;
  p.values = record.float_values(name);
  std::int64_t const height = record.integer("height"), width = record.integer("width");
  auto const size = std::int64_t(p.values.size());
  if (height < 1 || width < 1 || height > size || width > size / height || size % (height * width) != 0)
    throw data_error(fmt::format("the {} values of feature '{}' are no picture of height {} and width {}",
                                 size, edl::printable(name, 64), height, width));
  p.extents = {int(height), int(width), int(size / (height * width))};
  return p;
}

EDL_INLINE void resize(picture const& from, shape to, std::span<float> into) {
  if (to.height < 1 || to.width < 1 || to.channels < 1 || into.size() != to.size())
    throw usage_error(fmt::format("a picture cannot be resized to {} × {} with {} channels in {} values",
                                  to.height, to.width, to.channels, into.size()));
  bool const colour = from.extents.channels == 1 && to.channels == 3,
             grey = from.extents.channels == 3 && to.channels == 1;
  if (!colour && !grey && from.extents.channels != to.channels)
    throw data_error(
        fmt::format("the picture has {} channels, and {} are wanted", from.extents.channels, to.channels));
  auto const channels = std::size_t(from.extents.channels), width = std::size_t(to.width),
             row = std::size_t(from.extents.width) * channels, narrow = width * channels;
  data::detail::resized_axis const down(from.extents.height, to.height), across(from.extents.width, to.width);
  std::vector<float> tall(row), flat(narrow);
  for (std::size_t y = 0; y < std::size_t(to.height); ++y) {
    down.put(y, [&](std::size_t j) { return from.values.data() + j * row; }, row, tall.data());
    float* const out = into.data() + y * width * std::size_t(to.channels);
    float* const wide = colour || grey ? flat.data() : out;
    for (std::size_t x = 0; x < width; ++x)
      across.put(x, [&](std::size_t j) { return tall.data() + j * channels; }, channels, wide + x * channels);
    for (std::size_t x = 0; colour && x < width; ++x) std::fill_n(out + 3 * x, 3, flat[x]);
    for (std::size_t x = 0; grey && x < width; ++x)
      out[x] = 0.299f * flat[3 * x] + 0.587f * flat[3 * x + 1] + 0.114f * flat[3 * x + 2];
  }
}

}  // namespace edl
