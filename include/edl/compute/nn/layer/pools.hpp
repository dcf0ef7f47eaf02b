// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/padding.hpp"

namespace edl::nn {

namespace detail {

/// The check that max and average pooling share. A stride of 0 means the window's.
constexpr fit check_pool(shape in, extent window, extent stride, padding p) {
  if (window.height < 1 || window.width < 1 || stride.height < 0 || stride.width < 0)
    return fit::option_out_of_range;
  bool const inside = window.height <= in.height && window.width <= in.width;
  return inside || p != padding::valid ? fit::fits : fit::window_exceeds_input;
}

constexpr pool_geometry pool_over(shape in, extent window, extent stride, padding p,
                                  bfloat16_io narrow = {}) {
  if (stride.height == 0) stride.height = window.height;
  if (stride.width == 0) stride.width = window.width;
  auto const rows = place(in.height, window.height, stride.height, p);
  auto const columns = place(in.width, window.width, stride.width, p);
  return {in,    {rows.places, columns.places, in.channels}, window, stride, {rows.before, columns.before},
          narrow};
}

constexpr pool_geometry pool_whole(shape in, bfloat16_io narrow = {}) {
  return pool_over(in, {in.height, in.width}, {in.height, in.width}, padding::valid, narrow);
}

/// The common part of max and average pooling besides their options.
template <class L>
struct pool {
  static constexpr bool portable = true;

  constexpr fit check(shape in) const {
    return check_pool(in, layer().window, layer().stride, layer().padding);
  }
  constexpr pool_geometry geometry(shape in, bfloat16_io narrow = {}) const {
    return pool_over(in, layer().window, layer().stride, layer().padding, narrow);
  }
  constexpr shape output(shape in) const { return geometry(in).out; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

 private:
  constexpr L const& layer() const { return static_cast<L const&>(*this); }
};

/// The common part of global pooling layers.
struct global_pool {
  static constexpr bool portable = true, knows_padding = true;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return {1, 1, in.channels}; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }
};

}  // namespace detail

/// The greatest element under each window. (h, w, c) → (h', w', c)
struct max_pool : detail::pool<max_pool> {
  extent window = 2;
  extent stride = 0;  ///< 0: the window's
  nn::padding padding = nn::padding::valid;

  static constexpr std::string_view name = "max_pool";

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.max_pool_forward(geometry(a.in, a.narrow), a.batch, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.max_pool_backward(geometry(a.in, a.narrow), a.batch, a.x, a.y, a.dy, a.dx);
  }
};

/// The mean of the elements under each window and inside the sample. (h, w, c) → (h', w', c)
struct average_pool : detail::pool<average_pool> {
  extent window = 2;
  extent stride = 0;  ///< 0: the window's
  nn::padding padding = nn::padding::valid;

  static constexpr std::string_view name = "average_pool";
  static constexpr bool reads_y = false;

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.average_pool_forward(geometry(a.in, a.narrow), a.batch, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.average_pool_backward(geometry(a.in, a.narrow), a.batch, a.dy, a.dx);
  }
};

/// The greatest element of each channel. (h, w, c) → (c)
struct global_max_pool : detail::global_pool {
  static constexpr std::string_view name = "global_max_pool";

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    if (auto const places = p.places_of(a.in); places.all())
      p.device.max_pool_forward(detail::pool_whole(a.in, a.narrow), a.batch, a.x, a.y);
    else
      p.device.masked_max_pool_forward(places, std::size_t(a.in.channels), a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (auto const places = p.places_of(a.in); places.all())
      p.device.max_pool_backward(detail::pool_whole(a.in, a.narrow), a.batch, a.x, a.y, a.dy, a.dx);
    else
      p.device.masked_max_pool_backward(places, std::size_t(a.in.channels), a.x, a.y, a.dy, a.dx);
  }
};

/// The mean of each channel. (h, w, c) → (c)
struct global_average_pool : detail::global_pool {
  static constexpr std::string_view name = "global_average_pool";
  static constexpr bool reads_y = false;

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
