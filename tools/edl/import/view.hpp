// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "edl/core/shape.hpp"
#include "import/network_file.hpp"

namespace edl::tool::lifting {

using onnx_file::numbers;

/// How the axes of an ONNX tensor, without that of samples, lie in a sample of edl, which is channels last.
/// The sample is `sizes`, the last one fastest; an axis is a list of their indices. So channels first, (c, h,
/// w), are the axes {2}, {0}, {1} of sizes (h, w, c), and their flattening is the one axis {2, 0, 1}. Sizes
/// of 1 are left out.
struct view {
  numbers sizes;
  std::vector<std::vector<int>> axes;

  numbers dims() const;
  std::int64_t size() const;
  /// All indices in the order of the axes.
  std::vector<int> order() const;
  bool in_memory_order() const;
  /// For each element of the tensor, in the order of the axes, its place in the sample.
  std::vector<std::size_t> places() const;
  /// Sizes that follow each other in one axis become one, so that equal views compare equal.
  view joined() const;
  /// The same elements with other extents, where axes are parts or groups of these.
  std::optional<view> reshaped(numbers const& dims) const;
  /// Whether the last sizes, `channels` elements, are exactly the sizes of axis `axis`.
  bool is_channels(std::size_t axis, int channels) const;
  /// The number of sizes before the channels; −1: the channels are not the last ones.
  int places_of(int channels) const;
  bool operator==(view const&) const = default;
};

/// The axes (first …, last) of samples of these extents, in their order.
view in_order(numbers const& dims);
/// The axes (c, h, w), or (c, w) with `rank` 2, of a picture.
view channels_first(shape of, std::size_t rank);

}  // namespace edl::tool::lifting
