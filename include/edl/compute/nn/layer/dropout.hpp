// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// In training, sets a share of the elements to zero and divides the others by the remaining share, which
/// preserves the expectation. Otherwise it is the identity. The choice is a function of (seed, layer, step,
/// element). The shape stays.
struct dropout {
  setting rate = 0.5f;  ///< in [0, 1)

  static constexpr std::string_view name = "dropout";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return rate.is_in(0, 1) ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }
  /// One byte per element; a scalar has four or more.
  constexpr std::size_t saved(shape in, int batch) const { return (in.size() * std::size_t(batch) + 3) / 4; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    if (p.mode == mode::training)
      p.device.dropout_forward(rate_in(p), p.random, a.x, a.y, std::as_writable_bytes(a.saved), a.narrow);
    else
      p.device.copy(a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (p.mode == mode::training)
      p.device.dropout_backward(rate_in(p), std::as_bytes(a.saved), a.dy, a.dx, a.narrow);
    else
      p.device.copy(a.dy, a.dx, {a.narrow.out, a.narrow.in});
  }

 private:
  template <class D>
  float rate_in(pass<D> const& p) const {
    return rate.resolve(p.set, "the rate of a dropout", 0, 1);
  }
};

}  // namespace edl::nn
