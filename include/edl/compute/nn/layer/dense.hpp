// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/exact_products.hpp"
#include "edl/compute/nn/adaptable.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A fully connected layer: a kernel of (inputs, units) and, by default, a bias per unit. Flattens its input.
/// (h, w, c) → (units) With `each_place`, the channels of each place are the inputs, all places share the
/// variables, and they are one product. (h, w, c) → (h, w, units)
struct dense {
  int units = 0;
  bool each_place = false;
  bool use_bias = true;
  bool float32 = false;  ///< in float32 for any `--precision` (a GPU uses that precision)
  initializer kernel_initializer = glorot_uniform{};
  initializer bias_initializer = constant{0};

  static constexpr std::string_view name = "dense";
  static constexpr bool portable = true;

  constexpr fit check(shape) const { return units > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const {
    return each_place ? shape{in.height, in.width, units} : shape{1, 1, units};
  }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"kernel", {int(inputs(in)), units}, kernel_initializer});
    if (use_bias) visit(variable_spec{"bias", {units}, bias_initializer});
  }

  static constexpr bool activates = true, reads_y = false, skips_gradients = true;
  constexpr bfloat16_io narrows(shape) const { return {!float32, false}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a,
               edl::activation f = edl::activation::none) const {
    exact_products const exact(p.device, float32);
    carver parameters(a.parameters);
    auto const w = parameters.next(inputs(a.in) * std::size_t(units));
    p.device.dense_forward(rows(a.in, a.batch), inputs(a.in), std::size_t(units), f, a.x, w,
                           parameters.rest(), a.y, a.narrow.in);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    exact_products const exact(p.device, float32);
    carver parameters(a.parameters);
    carver gradients(a.gradients);
    auto const w = parameters.next(inputs(a.in) * std::size_t(units));
    auto const dw = gradients.next(a.gradients.empty() ? 0 : w.size());
    p.device.dense_backward(rows(a.in, a.batch), inputs(a.in), std::size_t(units), a.x, w, a.dy, a.dx, dw,
                            gradients.rest(), a.narrow.in);
  }

  /// What an adapter may be added to.
  constexpr std::array<adaptable, 1> adaptables(shape in) const {
    return {{{.inputs = int(inputs(in)), .outputs = units, .stride = units}}};
  }

  /// The product's rows, and the inputs of each output.
  constexpr std::size_t rows(shape in, pass_size batch) const {
    return std::size_t(batch) * in.size() / inputs(in);
  }
  constexpr std::size_t inputs(shape in) const { return each_place ? std::size_t(in.channels) : in.size(); }
};

}  // namespace edl::nn
