// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/layer.hpp"
#include "edl/nn/pool_window.hpp"

namespace edl::nn {

/// The mean of each channel. (h, w, c) → (c)
struct global_average_pool {
  static constexpr std::string_view name = "global_average_pool";
  static constexpr bool portable = true;
  static constexpr bool reads_y = false, knows_padding = true;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return {1, 1, in.channels}; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    if (auto const places = p.places_of(a.in); places.all())
      p.device.average_pool_forward(detail::pool_whole(a.in, a.narrow), a.batch, a.x, a.y);
    else
      p.device.masked_average_pool_forward(places, std::size_t(a.in.channels), a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (auto const places = p.places_of(a.in); places.all())
      p.device.average_pool_backward(detail::pool_whole(a.in, a.narrow), a.batch, a.dy, a.dx);
    else
      p.device.masked_average_pool_backward(places, std::size_t(a.in.channels), a.dy, a.dx);
  }
};

}  // namespace edl::nn
