// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/layer.hpp"

namespace edl::nn {

/// Passes on what it gets: a branch that is none.
struct identity {
  static constexpr std::string_view name = "identity";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.copy(a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.copy(a.dy, a.dx);
  }
};

}  // namespace edl::nn
