// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/exact_products.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/padding.hpp"

namespace edl::nn {

/// A convolution with a kernel of (height, width, channels / groups, filters) and, by default, a bias per
/// filter. (h, w, c) → (h', w', filters)
struct conv2d {
  int filters = 0;
  extent kernel = 1;
  extent stride = 1;
  nn::padding padding = nn::padding::valid;
  int groups = 1;
  bool use_bias = true;
  bool float32 = false;      ///< in float32 for any `--precision` (a GPU uses that precision)
  bool train_kernel = true;  ///< if not, the kernel keeps its initial value
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
    return inside || padding != nn::padding::valid ? fit::fits : fit::kernel_exceeds_input;
  }
  constexpr conv_geometry geometry(shape in, bfloat16_io narrow = {}) const {
    auto const rows = place(in.height, kernel.height, stride.height, padding);
    auto const columns = place(in.width, kernel.width, stride.width, padding);
    return {in,     {rows.places, columns.places, filters}, kernel,
            stride, {rows.before, columns.before},          groups,
            narrow};
  }
  constexpr shape output(shape in) const { return geometry(in).out; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"kernel", kernel_dims(in), kernel_initializer, train_kernel});
    if (use_bias) visit(variable_spec{"bias", {filters}, bias_initializer});
  }

  static constexpr bool activates = true, reads_y = false, adds_gradient = true, feeds_norm = true,
                        splits_backward = true;
  constexpr bfloat16_io narrows(shape) const { return {!float32, !float32}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a,
               edl::activation f = edl::activation::none, bool to_norm = false) const {
    exact_products const exact(p.device, float32);
    auto const g = geometry(a.in, a.narrow);
    auto const bias = a.parameters.subspan(trained(a.in));
    if (to_norm)
      p.device.conv2d_forward_to_norm(g, a.batch, a.x, kernel_of(a), bias, a.y);
    else
      p.device.conv2d_forward(g, a.batch, f, a.x, kernel_of(a), bias, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, view<typename D::scalar> more = {},
                bool masked = false, bool narrow_more = false) const {
    exact_products const exact(p.device, float32);
    std::size_t const n = trained(a.in);
    auto const g = geometry(a.in, a.narrow);
    bool const wanted = !a.gradients.empty();
    auto const dkernel = a.gradients.first(wanted ? n : 0), dbias = a.gradients.subspan(wanted ? n : 0);
    if (more.empty())
      p.device.conv2d_backward(g, a.batch, a.x, kernel_of(a), a.dy, a.dx, dkernel, dbias);
    else
      p.device.conv2d_backward_onto(g, a.batch, a.x, kernel_of(a), a.dy, more, masked, narrow_more, a.dx,
                                    dkernel, dbias);
  }

  constexpr extents kernel_dims(shape in) const {
    return {kernel.height, kernel.width, in.channels / groups, filters};
  }

 private:
  /// Size of the kernel among the parameters.
  constexpr std::size_t trained(shape in) const { return train_kernel ? kernel_dims(in).size() : 0; }

  template <class Args>
  auto kernel_of(Args const& a) const {
    return (train_kernel ? a.parameters : decltype(a.parameters)(a.state)).first(kernel_dims(a.in).size());
  }
};

}  // namespace edl::nn
