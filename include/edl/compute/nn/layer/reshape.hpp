// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// The same elements, in their order, with other extents. One that is 0 is what the others leave.
/// (h, w, c) → (height, width, channels)
struct reshape {
  int height = 1, width = 1, channels = 0;

  static constexpr std::string_view name = "reshape";
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const { return wrong(in).none() ? fit::fits : fit::tensors_do_not_fit; }
  constexpr expression::mistake wrong(shape in) const {
    shape const out = output(in);
    bool const fits = out.height > 0 && out.width > 0 && out.channels > 0 && out.size() == in.size();
    if (fits) return {};
    return {expression::mistake_kind::shapes_of_reshape, 0, in, {height, width, channels}};
  }
  constexpr shape output(shape in) const {
    shape out{height, width, channels};
    auto const fill = [&](int& one, int a, int b) {
      if (one == 0 && a > 0 && b > 0) one = int(in.size() / (std::size_t(a) * std::size_t(b)));
    };
    fill(out.channels, height, width);
    fill(out.width, height, channels);
    fill(out.height, width, channels);
    return out;
  }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.copy(a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (!a.dx.empty()) p.device.copy(a.dy, a.dx, {a.narrow.out, a.narrow.in});
  }
};

}  // namespace edl::nn
