// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/layer.hpp"

namespace edl::nn {

/// exp(x) / Σ exp(x) over the channels. The shape stays.
struct softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const classes = std::size_t(a.in.channels);
    p.device.softmax_forward(a.x.size() / classes, classes, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    auto const classes = std::size_t(a.in.channels);
    p.device.softmax_backward(a.y.size() / classes, classes, a.y, a.dy, a.dx);
  }
};

}  // namespace edl::nn
