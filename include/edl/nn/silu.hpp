// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/elementwise.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// x · σ(x) = x / (1 + exp(−x)), element by element. It is also called swish, with β = 1. (Elfwing, Uchibe
/// and Doya, 2017; Ramachandran, Zoph and Le, "Searching for activation functions", 2017.) The shape stays.
struct silu {
  static constexpr std::string_view name = "silu";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(elementwise::silu, 0, a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(elementwise::silu, 0, a.x, a.dy, a.dx, a.narrow);
  }
};

}  // namespace edl::nn
