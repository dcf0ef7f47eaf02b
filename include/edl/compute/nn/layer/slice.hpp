// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Channels [first, first + count) of each place.
struct slice {
  int first = 0;
  int count = 1;

  static constexpr std::string_view name = "slice";
  static constexpr bool each_place = true;
  static constexpr bool portable = false;  // the rest's gradient is zero, which devices do not write yet
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const {
    return first < 0 || count < 1 || first > in.channels - count ? fit::option_out_of_range : fit::fits;
  }
  constexpr shape output(shape in) const { return {in.height, in.width, count}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const channels = std::size_t(a.in.channels), own = std::size_t(count);
    p.device.copy_columns(a.x.size() / channels, own, a.x, std::size_t(first), channels, a.y, 0, own);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    auto const channels = std::size_t(a.in.channels), own = std::size_t(count);
    std::ranges::fill(a.dx, typename D::scalar(0));
    p.device.copy_columns(a.dx.size() / channels, own, a.dy, 0, own, a.dx, std::size_t(first), channels);
  }
};

}  // namespace edl::nn
