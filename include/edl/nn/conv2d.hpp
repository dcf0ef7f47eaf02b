// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/activation.hpp"
#include "edl/device/geometry.hpp"
#include "edl/nn/carve.hpp"
#include "edl/nn/layer.hpp"
#include "edl/nn/padding.hpp"

namespace edl::nn {

/// A convolution with a kernel of (height, width, channels / groups, filters) and, unless told otherwise, a
/// bias per filter. (h, w, c) → (h', w', filters)
struct conv2d {
  int filters = 0;
  extent kernel = 1, stride = 1;
  nn::padding padding = nn::padding::valid;
  int groups = 1;
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform{};
  initializer bias_initializer = constant{0};

  static constexpr std::string_view name = "conv2d";
  static constexpr bool portable = true;

  constexpr fit check(shape in) const {
    if (filters < 1 || kernel.height < 1 || kernel.width < 1 || stride.height < 1 || stride.width < 1 ||
        groups < 1)
      return fit::option_out_of_range;
    if (in.channels % groups != 0 || filters % groups != 0) return fit::groups_do_not_divide_channels;
    bool const inside = kernel.height <= in.height && kernel.width <= in.width;
    return inside || padding == nn::padding::same ? fit::fits : fit::kernel_exceeds_input;
  }
  constexpr conv_geometry geometry(shape in) const {
    auto const rows = place(in.height, kernel.height, stride.height, padding);
    auto const columns = place(in.width, kernel.width, stride.width, padding);
    return {in,     {rows.places, columns.places, filters}, kernel,
            stride, {rows.before, columns.before},          groups};
  }
  constexpr shape output(shape in) const { return geometry(in).out; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"kernel", kernel_dims(in), kernel_initializer});
    if (use_bias) visit(variable_spec{"bias", {filters}, bias_initializer});
  }

  static constexpr bool activates = true, reads_y = false;

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, activation f = activation::none) const {
    carver parameters(a.parameters);
    auto const w = parameters.next(kernel_dims(a.in).size());
    conv2d_forward(p.device, geometry(a.in), a.batch, f, a.x, w, parameters.rest(), a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    carver parameters(a.parameters);
    carver gradients(a.gradients);
    auto const w = parameters.next(kernel_dims(a.in).size());
    auto const dw = gradients.next(w.size());
    conv2d_backward(p.device, geometry(a.in), a.batch, a.x, w, a.dy, a.dx, dw, gradients.rest());
  }

  constexpr extents kernel_dims(shape in) const {
    return {kernel.height, kernel.width, in.channels / groups, filters};
  }
};

}  // namespace edl::nn
