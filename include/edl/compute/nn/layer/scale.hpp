// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// factor · x. The shape stays.
struct scale {
  setting factor = 1.0f;

  static constexpr std::string_view name = "scale";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const {
    return factor.is_in(-setting::unbounded, setting::unbounded) ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::scale, factor_in(p), a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::scale, factor_in(p), a.dy, a.dx);
  }

 private:
  template <class D>
  float factor_in(pass<D> const& p) const {
    return factor.resolve(p.set, "the factor of a scale", -setting::unbounded, setting::unbounded);
  }
};

}  // namespace edl::nn
