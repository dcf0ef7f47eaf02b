// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/elementwise.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// factor · x. The shape stays.
struct scale {
  float factor = 1;

  static constexpr std::string_view name = "scale";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::scale, factor, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::scale, factor, a.dy, a.dx);
  }
};

}  // namespace edl::nn
