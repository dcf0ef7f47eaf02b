// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// The same elements as a row. Not needed before `dense`. (h, w, c) → (h · w · c)
struct flatten {
  static constexpr std::string_view name = "flatten";
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return {1, 1, int(in.size())}; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.copy(a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.copy(a.dy, a.dx, {a.narrow.out, a.narrow.in});
  }
};

}  // namespace edl::nn
