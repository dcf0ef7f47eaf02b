// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/nn/carve.hpp"
#include "edl/nn/layer.hpp"

namespace edl::nn {

/// Normalises the channels of each place of each sample to mean 0 and variance 1, then y = gamma ∘ x̂ + beta.
/// (Ba et al., "Layer Normalization", 2016; Keras' defaults.) It knows no batch and carries no state. The
/// shape stays.
struct layer_norm {
  float epsilon = 1e-3f;

  static constexpr std::string_view name = "layer_normalization";
  static constexpr bool reads_y = false;

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
  void forward(pass<D>&, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const c = std::size_t(a.in.channels);
    auto const gamma = a.parameters.first(c), beta = a.parameters.subspan(c, c);
    for (std::size_t place = 0; place < places(a.in, a.batch); ++place) {
      T const* const x = a.x.data() + place * c;
      T* const y = a.y.data() + place * c;
      T mean = 0, variance = 0;
      for (std::size_t k = 0; k < c; ++k) mean += x[k];
      mean /= T(c);
      for (std::size_t k = 0; k < c; ++k) variance += (x[k] - mean) * (x[k] - mean);
      T const scale = 1 / std::sqrt(variance / T(c) + T(epsilon));
      for (std::size_t k = 0; k < c; ++k) y[k] = gamma[k] * (x[k] - mean) * scale + beta[k];
      a.saved[2 * place] = mean;
      a.saved[2 * place + 1] = scale;
    }
  }
  template <class D>
  void backward(pass<D>&, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const c = std::size_t(a.in.channels);
    auto const gamma = a.parameters.first(c);
    auto const dgamma = a.gradients.first(a.gradients.empty() ? 0 : c),
               dbeta = a.gradients.subspan(dgamma.size());
    std::ranges::fill(a.gradients, T(0));
    for (std::size_t place = 0; place < places(a.in, a.batch); ++place) {
      T const* const x = a.x.data() + place * c;
      T const* const dy = a.dy.data() + place * c;
      T const mean = a.saved[2 * place], scale = a.saved[2 * place + 1];
      T sum = 0, along = 0;  // of what comes back, and of its product with the normalised input
      for (std::size_t k = 0; k < c; ++k) {
        T const normal = (x[k] - mean) * scale;
        if (!dgamma.empty()) {
          dgamma[k] += dy[k] * normal;
          dbeta[k] += dy[k];
        }
        sum += dy[k] * gamma[k];
        along += dy[k] * gamma[k] * normal;
      }
      if (a.dx.empty()) continue;
      T* const dx = a.dx.data() + place * c;
      for (std::size_t k = 0; k < c; ++k)
        dx[k] = scale * (dy[k] * gamma[k] - sum / T(c) - (x[k] - mean) * scale * along / T(c));
    }
  }

 private:
  static constexpr std::size_t places(shape in, pass_size batch) {
    return std::size_t(batch) * in.size() / std::size_t(in.channels);
  }
};

}  // namespace edl::nn
