// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Element-wise products of vectors with each other, up to degree `layers` + 1. Each layer compresses its
/// products to `maps` vectors: x^{l+1}_h = Σ_ij W^l_{ijh} (x^l_i ∘ x^0_j). The result is the sum of the
/// elements of each of these vectors. It is the compressed interaction network of xDeepFM, whose activation
/// is the identity (Lian et al., 2018, equations 6 and 8). (h, w, c), which is h·w vectors → (layers · maps)
struct compressed_interaction {
  int layers = 2;
  int maps = 64;
  initializer kernel_initializer = truncated_normal{};

  static constexpr std::string_view name = "compressed_interaction";
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return layers > 0 && maps > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape) const { return {1, 1, layers * maps}; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"first_kernel", {int(pairs(in, 0)), maps}, kernel_initializer});
    if (layers > 1) visit(variable_spec{"kernel", {layers - 1, int(pairs(in, 1)), maps}, kernel_initializer});
  }

  /// The vectors of the input and of each layer, with a row for each sample and element.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    std::size_t const rows = rows_of(in, batch);
    return rounded(rows * vectors(in, 0)) + std::size_t(layers) * rounded(rows * vectors(in, 1));
  }
  /// The products of some rows and their gradients, and the kernel's gradient from these; then the gradients
  /// of the input's vectors and of two layers'.
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    std::size_t const rows = rows_of(in, batch), most = widest(in), some = std::min(rows, rows_at_once);
    return 2 * rounded(some * most) + rounded(most * std::size_t(maps)) + rounded(rows * vectors(in, 0)) +
           2 * rounded(rows * vectors(in, 1));
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const [rows, depth] = sizes(a.in, a.batch);
    std::size_t const fields = vectors(a.in, 0), out = std::size_t(maps);
    carver saved(a.saved), scratch(p.scratch);
    auto const first = saved.aligned(rows * fields);
    auto const products = scratch.aligned(std::min(rows, rows_at_once) * widest(a.in));
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < fields; ++i)
        first[r * fields + i] = a.x[(r / depth * fields + i) * depth + r % depth];
    view<T> x = first;
    for (std::size_t l = 0; l < std::size_t(layers); ++l) {
      std::size_t const n = pairs(a.in, l);
      auto const y = saved.aligned(rows * out);
      for (std::size_t r = 0; r < rows; r += rows_at_once) {
        std::size_t const some = std::min(rows_at_once, rows - r);
        multiply<T>(x, first, r, some, vectors(a.in, l), fields, products);
        p.device.dense_forward(some, n, out, activation::none, products.first(some * n),
                               kernel_of(a.parameters, a.in, l), {}, y.subspan(r * out, some * out));
      }
      for (std::size_t b = 0; b < std::size_t(a.batch); ++b)
        for (std::size_t h = 0; h < out; ++h) {
          T sum = 0;
          for (std::size_t k = 0; k < depth; ++k) sum += y[(b * depth + k) * out + h];
          a.y[(b * std::size_t(layers) + l) * out + h] = sum;
        }
      x = y;
    }
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const [rows, depth] = sizes(a.in, a.batch);
    std::size_t const fields = vectors(a.in, 0), out = std::size_t(maps), most = widest(a.in);
    carver saved(a.saved), scratch(p.scratch);
    view<T> const first = saved.aligned(rows * fields);
    std::size_t const each = rounded(rows * out);
    auto const after_first = a.saved.subspan(rounded(rows * fields));
    auto const products = scratch.aligned(std::min(rows, rows_at_once) * most);
    auto const dproducts = scratch.aligned(std::min(rows, rows_at_once) * most);
    auto const part = scratch.aligned(most * out);
    auto const dfirst = scratch.aligned(rows * fields);
    auto dy = scratch.aligned(rows * out), dx = scratch.aligned(rows * out);
    std::ranges::fill(dfirst, T(0));
    std::ranges::fill(dy, T(0));
    for (std::size_t l = std::size_t(layers); l-- > 0;) {
      std::size_t const n = pairs(a.in, l), before = vectors(a.in, l);
      view<T> const x = l == 0 ? first : view<T>(after_first.subspan((l - 1) * each, rows * out));
      auto const dkernel = kernel_of(a.gradients, a.in, l);
      for (std::size_t i = 0; i < rows * out; ++i)
        dy[i] += a.dy[(i / out / depth * std::size_t(layers) + l) * out + i % out];
      std::ranges::fill(dkernel, T(0));
      if (l > 0) std::ranges::fill(dx, T(0));
      for (std::size_t r = 0; r < rows; r += rows_at_once) {
        std::size_t const some = std::min(rows_at_once, rows - r);
        multiply<T>(x, first, r, some, before, fields, products);
        p.device.dense_backward(some, n, out, view<T>(products.first(some * n)),
                                kernel_of(a.parameters, a.in, l), dy.subspan(r * out, some * out),
                                dproducts.first(some * n), part.first(n * out), std::span<T>{});
        for (std::size_t i = 0; i < n * out; ++i) dkernel[i] += part[i];
        for (std::size_t k = 0; k < some; ++k)
          for (std::size_t i = 0; i < before; ++i)
            for (std::size_t j = 0; j < fields; ++j) {
              T const d = dproducts[k * n + i * fields + j];
              (l == 0 ? dfirst : dx)[(r + k) * before + i] += d * first[(r + k) * fields + j];
              dfirst[(r + k) * fields + j] += d * x[(r + k) * before + i];
            }
      }
      std::swap(dy, dx);
    }
    if (a.dx.empty()) return;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < fields; ++i)
        a.dx[(r / depth * fields + i) * depth + r % depth] = dfirst[r * fields + i];
  }

 private:
  /// Products are computed for this many rows at a time, so that they stay in the cache.
  static constexpr std::size_t rows_at_once = 256;

  static constexpr std::size_t rows_of(shape in, pass_size batch) {
    return std::size_t(batch) * std::size_t(in.channels);
  }
  struct size_pair {
    std::size_t rows, depth;
  };
  static constexpr size_pair sizes(shape in, pass_size batch) {
    return {rows_of(in, batch), std::size_t(in.channels)};
  }
  /// Number of a layer's input vectors, and of its products.
  constexpr std::size_t vectors(shape in, std::size_t layer) const {
    return layer == 0 ? std::size_t(in.height) * std::size_t(in.width) : std::size_t(maps);
  }
  constexpr std::size_t pairs(shape in, std::size_t layer) const {
    return vectors(in, layer) * vectors(in, 0);
  }
  constexpr std::size_t widest(shape in) const {
    return std::max(pairs(in, 0), layers > 1 ? pairs(in, 1) : std::size_t(0));
  }

  template <class Span>
  Span kernel_of(Span all, shape in, std::size_t layer) const {
    std::size_t const first = pairs(in, 0) * std::size_t(maps), other = pairs(in, 1) * std::size_t(maps);
    return layer == 0 ? all.first(first) : all.subspan(first + (layer - 1) * other, other);
  }

  template <class T>
  static void multiply(view<T> x, view<T> first, std::size_t from, std::size_t rows, std::size_t before,
                       std::size_t fields, std::span<T> products) {
    for (std::size_t k = 0; k < rows; ++k)
      for (std::size_t i = 0; i < before; ++i)
        for (std::size_t j = 0; j < fields; ++j)
          products[(k * before + i) * fields + j] =
              x[(from + k) * before + i] * first[(from + k) * fields + j];
  }
};

}  // namespace edl::nn
