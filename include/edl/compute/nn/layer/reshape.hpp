// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

namespace detail {

/// A layer whose result is its input's elements in their order.
struct same_elements {
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

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

}  // namespace detail

/// Returns its input: an empty branch.
struct identity : detail::same_elements {
  static constexpr std::string_view name = "identity";
  static constexpr bool each_place = true;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }
};

/// The same elements as a row. Not needed before `dense`. (h, w, c) → (h · w · c)
struct flatten : detail::same_elements {
  static constexpr std::string_view name = "flatten";

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return {1, 1, int(in.size())}; }
};

/// The same elements, in their order, with other extents. At most one extent is 0, and follows from the
/// others. (h, w, c) → (height, width, channels)
struct reshape : detail::same_elements {
  int height = 1, width = 1, channels = 0;

  static constexpr std::string_view name = "reshape";

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
};

}  // namespace edl::nn
