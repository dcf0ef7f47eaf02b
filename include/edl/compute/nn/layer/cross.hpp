// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Products of the inputs with each other, up to degree `layers` + 1. Flattens its input to n numbers. With
/// a matrix W per layer, x_{l+1} = x_0 ∘ (W_l x_l + b_l) + x_l (Wang et al., "DCN V2", 2021). With
/// `vectors`, a vector: x_{l+1} = x_0 (w_l · x_l) + b_l + x_l (Wang et al., "Deep & Cross Network", 2017).
/// (h, w, c) → (n)
struct cross {
  int layers = 3;
  bool vectors = false;
  initializer kernel_initializer = truncated_normal{};

  static constexpr std::string_view name = "cross";
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return layers > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return {1, 1, int(in.size())}; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"kernel", {layers, int(in.size()), int(products(in))}, kernel_initializer});
    visit(variable_spec{"bias", {layers, int(in.size())}, constant{0}});
  }
  /// The input of each layer but the first, and the factor of x_0 in each.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    auto const rows = std::size_t(batch), n = std::size_t(layers);
    return (n - 1) * rounded(rows * in.size()) + n * rounded(rows * products(in));
  }
  /// The gradients of a result, of x_0, of a layer's input and of the factor of x_0.
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    auto const rows = std::size_t(batch);
    return 3 * rounded(rows * in.size()) + rounded(rows * products(in));
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = a.in.size(), m = products(a.in), rows = std::size_t(a.batch);
    carver saved(a.saved);
    view<T> x = a.x;
    for (std::size_t l = 0; l < std::size_t(layers); ++l) {
      view<T> const kernel = kernel_of(a.parameters, l, n, m), bias = bias_of(a.parameters, l, n, m);
      auto const z = saved.aligned(rows * m);
      auto const y = l + 1 == std::size_t(layers) ? a.y : saved.aligned(rows * n);
      p.device.dense_forward(rows, n, m, activation::none, x, kernel, vectors ? view<T>{} : bias, z);
      for (std::size_t i = 0; i < rows * n; ++i)
        y[i] = a.x[i] * z[vectors ? i / n : i] + (vectors ? bias[i % n] : T(0)) + x[i];
      x = y;
    }
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = a.in.size(), m = products(a.in), rows = std::size_t(a.batch);
    carver scratch(p.scratch);
    auto const dy = scratch.aligned(rows * n), dx0 = scratch.aligned(rows * n),
               dx = scratch.aligned(rows * n), dz = scratch.aligned(rows * m);
    std::copy(a.dy.begin(), a.dy.end(), dy.begin());
    std::fill(dx0.begin(), dx0.end(), T(0));
    std::size_t const each_z = rounded(rows * m), each_x = rounded(rows * n);
    for (std::size_t l = std::size_t(layers); l-- > 0;) {
      auto const z = a.saved.subspan(l * (each_z + each_x), rows * m);
      view<T> const x = l == 0 ? a.x : view<T>(a.saved.subspan(l * (each_z + each_x) - each_x, rows * n));
      auto const dbias = bias_of(a.gradients, l, n, m);
      std::fill(dz.begin(), dz.end(), T(0));
      if (vectors) std::fill(dbias.begin(), dbias.end(), T(0));
      for (std::size_t i = 0; i < rows * n; ++i) {
        std::size_t const of = vectors ? i / n : i;
        dz[of] += dy[i] * a.x[i];
        dx0[i] += dy[i] * z[of];
        if (vectors) dbias[i % n] += dy[i];
      }
      p.device.dense_backward(rows, n, m, x, kernel_of(a.parameters, l, n, m), dz, dx,
                              kernel_of(a.gradients, l, n, m), vectors ? std::span<T>{} : dbias);
      for (std::size_t i = 0; i < rows * n; ++i) dy[i] += dx[i];
    }
    if (a.dx.empty()) return;
    for (std::size_t i = 0; i < rows * n; ++i) a.dx[i] = dy[i] + dx0[i];
  }

 private:
  /// Size of the factor of x_0: one number, or one for each element.
  constexpr std::size_t products(shape in) const { return vectors ? 1 : in.size(); }
  template <class Span>
  Span kernel_of(Span all, std::size_t layer, std::size_t n, std::size_t m) const {
    return all.subspan(layer * n * m, n * m);
  }
  template <class Span>
  Span bias_of(Span all, std::size_t layer, std::size_t n, std::size_t m) const {
    return all.subspan(std::size_t(layers) * n * m + layer * n, n);
  }
};

}  // namespace edl::nn
