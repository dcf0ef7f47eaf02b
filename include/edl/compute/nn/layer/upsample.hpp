// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/pools.hpp"

namespace edl::nn {

/// Each place becomes `factor.height` × `factor.width` places of the same values (the nearest neighbour's).
/// (h, w, c) → (h · factor.height, w · factor.width, c)
struct upsample {
  extent factor = 2;

  static constexpr std::string_view name = "upsample";
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const {
    return factor.height > 0 && factor.width > 0 ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const {
    return {in.height * factor.height, in.width * factor.width, in.channels};
  }
  /// The rows that are widened, but not yet repeated `factor.height` times.
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    return factor.height > 1 ? std::size_t(batch) * in.size() * std::size_t(factor.width) : 0;
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const c = std::size_t(a.in.channels), across = std::size_t(factor.width),
               down = std::size_t(factor.height), row = std::size_t(a.out.width) * c;
    auto const wide = down > 1 ? p.scratch.first(a.x.size() * across) : a.y;
    for (std::size_t i = 0; i < across; ++i)
      p.device.copy_columns(a.x.size() / c, c, a.x, 0, c, wide, i * c, across * c);
    for (std::size_t i = 0; down > 1 && i < down; ++i)
      p.device.copy_columns(wide.size() / row, row, wide, 0, row, a.y, i * row, down * row);
  }
  /// The sum under each window: its size times the mean.
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    auto const windows = detail::pool_over(a.out, factor, factor, padding::valid);
    p.device.average_pool_forward(windows, a.batch, a.dy, a.dx);
    p.device.elementwise_forward(elementwise::scale, typename D::scalar(factor.height * factor.width), a.dx,
                                 a.dx);
  }
};

}  // namespace edl::nn
