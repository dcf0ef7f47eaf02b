// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Normalises the channels of each place of each sample to mean 0 and variance 1, then y = gamma ∘ x̂ + beta.
/// (Ba et al., "Layer Normalization", 2016; Keras' defaults.) It knows no batch and carries no state. The
/// shape stays. It runs on the processor.
struct layer_norm {
  float epsilon = 1e-3f;

  static constexpr std::string_view name = "layer_normalization";
  static constexpr bool each_place = true;
  static constexpr bool reads_y = false, recomputes = true;

  constexpr fit check(shape) const { return epsilon > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"gamma", {in.channels}, constant{1}});
    visit(variable_spec{"beta", {in.channels}, constant{0}});
  }
  /// The mean and 1 / deviation of each place.
  constexpr std::size_t saved(shape in, pass_size batch) const { return 2 * places(in, batch); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const c = std::size_t(a.in.channels);
    p.device.layer_norm_forward(places(a.in, a.batch), c, T(epsilon), a.x, a.parameters.first(c),
                                a.parameters.subspan(c, c), a.y, a.saved);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    auto const c = std::size_t(a.in.channels), trained = a.gradients.empty() ? 0 : c;
    p.device.layer_norm_backward(places(a.in, a.batch), c, a.x, a.parameters.first(c), a.dy, a.saved, a.dx,
                                 a.gradients.first(trained), a.gradients.subspan(trained));
  }

 private:
  static constexpr std::size_t places(shape in, pass_size batch) {
    return std::size_t(batch) * in.size() / std::size_t(in.channels);
  }
};

}  // namespace edl::nn
