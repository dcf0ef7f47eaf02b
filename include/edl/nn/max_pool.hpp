// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/layer.hpp"
#include "edl/nn/pool_window.hpp"

namespace edl::nn {

/// The greatest element under each window. (h, w, c) → (h', w', c)
struct max_pool {
  extent window = 2;
  extent stride = 0;  ///< 0: the window's
  nn::padding padding = nn::padding::valid;

  static constexpr std::string_view name = "max_pool";
  static constexpr bool portable = true;

  constexpr fit check(shape in) const { return detail::check_pool(in, window, stride, padding); }
  constexpr pool_geometry geometry(shape in, bfloat16_io narrow = {}) const {
    return detail::pool_over(in, window, stride, padding, narrow);
  }
  constexpr shape output(shape in) const { return geometry(in).out; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.max_pool_forward(geometry(a.in, a.narrow), a.batch, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.max_pool_backward(geometry(a.in, a.narrow), a.batch, a.x, a.y, a.dy, a.dx);
  }
};

}  // namespace edl::nn
