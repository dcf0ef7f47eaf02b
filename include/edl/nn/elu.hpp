// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/elementwise.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// x where it is positive, alpha · (exp(x) − 1) elsewhere (Clevert, Unterthiner and Hochreiter, "Exponential
/// linear units", ICLR 2016). The shape stays.
struct elu {
  setting alpha = 1.0f;  ///< not negative

  static constexpr std::string_view name = "elu";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr fit check(shape) const {
    return alpha.is_in(0, setting::unbounded) ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::elu, alpha_in(p), a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(elementwise::elu, alpha_in(p), a.y, a.dy, a.dx, a.narrow);
  }

 private:
  template <class D>
  float alpha_in(pass<D> const& p) const {
    return alpha.resolve(p.set, "the alpha of an elu", 0, setting::unbounded);
  }
};

}  // namespace edl::nn
