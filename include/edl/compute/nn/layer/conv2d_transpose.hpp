// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/padding.hpp"

namespace edl::nn {

/// A transposed convolution: the gradient of a `conv2d` with the same options with respect to its input.
/// (Dumoulin and Visin, "A guide to convolution arithmetic", 2016.) The kernel is (height, width, filters,
/// channels), as in Keras. It runs on the processor. (h, w, c) → (h', w', filters), where h' = h · stride
/// with `padding::same`, and (h − 1) · stride + kernel, but not less than h · stride, otherwise.
struct conv2d_transpose {
  int filters = 0;
  extent kernel = 1;
  extent stride = 1;
  nn::padding padding = nn::padding::valid;
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform{};
  initializer bias_initializer = constant{0};

  static constexpr std::string_view name = "conv2d_transpose";
  static constexpr bool portable = false;  // devices cannot add a bias separately
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const {
    bool const good = filters > 0 && kernel.height > 0 && kernel.width > 0 && stride.height > 0 &&
                      stride.width > 0 && padding != nn::padding::half;
    return good ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const {
    return {extended(in.height, kernel.height, stride.height), extended(in.width, kernel.width, stride.width),
            filters};
  }
  /// The geometry of the reverse convolution.
  constexpr conv_geometry geometry(shape in) const {
    shape const out = output(in);
    return {out,
            in,
            kernel,
            stride,
            {place(out.height, kernel.height, stride.height, padding).before,
             place(out.width, kernel.width, stride.width, padding).before},
            1};
  }
  constexpr extents kernel_dims(shape in) const {
    return {kernel.height, kernel.width, filters, in.channels};
  }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"kernel", kernel_dims(in), kernel_initializer});
    if (use_bias) visit(variable_spec{"bias", {filters}, bias_initializer});
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = kernel_dims(a.in).size(), columns = std::size_t(filters);
    p.device.conv2d_backward(geometry(a.in), a.batch, a.y, a.parameters.first(n), a.x, a.y, {}, {});
    if (!use_bias) return;
    T const* const bias = a.parameters.data() + n;
    for (std::size_t row = 0; row < a.y.size(); row += columns) {
      T* const to = a.y.data() + row;
      for (std::size_t k = 0; k < columns; ++k) to[k] += bias[k];
    }
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = kernel_dims(a.in).size(), columns = std::size_t(filters);
    auto const g = geometry(a.in);
    auto const kernel_there = a.parameters.first(n);
    p.device.conv2d_backward(g, a.batch, a.dy, kernel_there, a.x, {}, a.gradients.first(n), {});
    if (!a.dx.empty()) p.device.conv2d_forward(g, a.batch, activation::none, a.dy, kernel_there, {}, a.dx);
    if (!use_bias) return;
    T* const sums = a.gradients.data() + n;
    std::fill_n(sums, columns, T(0));
    for (std::size_t row = 0; row < a.dy.size(); row += columns) {
      T const* const from = a.dy.data() + row;
      for (std::size_t k = 0; k < columns; ++k) sums[k] += from[k];
    }
  }

 private:
  /// The output extent of one axis.
  constexpr int extended(int in, int window, int step) const {
    return padding == nn::padding::same ? in * step : in * step + std::max(window - step, 0);
  }
};

}  // namespace edl::nn
