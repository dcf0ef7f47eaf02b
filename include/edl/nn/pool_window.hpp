// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/geometry.hpp"
#include "edl/nn/padding.hpp"

namespace edl::nn::detail {

/// What max and average pooling share. A stride of 0 is the window.
constexpr fit check_pool(shape in, extent window, extent stride, padding p) {
  if (window.height < 1 || window.width < 1 || stride.height < 0 || stride.width < 0)
    return fit::option_out_of_range;
  bool const inside = window.height <= in.height && window.width <= in.width;
  return inside || p == padding::same ? fit::fits : fit::window_exceeds_input;
}

constexpr pool_geometry pool_over(shape in, extent window, extent stride, padding p,
                                  bfloat16_io narrow = {}) {
  if (stride.height == 0) stride.height = window.height;
  if (stride.width == 0) stride.width = window.width;
  auto const rows = place(in.height, window.height, stride.height, p);
  auto const columns = place(in.width, window.width, stride.width, p);
  return {in,    {rows.places, columns.places, in.channels}, window, stride, {rows.before, columns.before},
          narrow};
}

constexpr pool_geometry pool_whole(shape in, bfloat16_io narrow = {}) {
  return pool_over(in, {in.height, in.width}, {in.height, in.width}, padding::valid, narrow);
}

}  // namespace edl::nn::detail
