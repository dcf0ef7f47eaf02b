// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/elementwise.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// x where it is positive, alpha · (exp(x) − 1) elsewhere (Clevert, Unterthiner and Hochreiter, "Exponential
/// linear units", ICLR 2016). The shape stays.
struct elu {
  float alpha = 1;  ///< not negative

  static constexpr std::string_view name = "elu";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr fit check(shape) const { return alpha >= 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::elu, alpha, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(elementwise::elu, alpha, a.y, a.dy, a.dx);
  }
};

}  // namespace edl::nn
