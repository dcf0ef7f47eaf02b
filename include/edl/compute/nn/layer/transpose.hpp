// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Places become channels, and channels places. It runs on the processor. (h, w, c) → (1, c, h · w)
struct transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr bool portable = false;  // devices turn no matrices yet
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return {1, in.channels, in.height * in.width}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.transpose(std::size_t(a.batch), std::size_t(a.out.channels), std::size_t(a.in.channels), a.x,
                       a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (!a.dx.empty())
      p.device.transpose(std::size_t(a.batch), std::size_t(a.in.channels), std::size_t(a.out.channels), a.dy,
                         a.dx);
  }
};

}  // namespace edl::nn
