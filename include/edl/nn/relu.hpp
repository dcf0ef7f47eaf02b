// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/elementwise.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// max(x, 0), element by element. The shape stays.
struct relu {
  static constexpr std::string_view name = "relu";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::relu, 0, a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(elementwise::relu, 0, a.y, a.dy, a.dx, a.narrow);
  }
};

}  // namespace edl::nn
