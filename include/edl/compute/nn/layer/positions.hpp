// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Adds a trained row to each place, the same for all samples, so that `attention` can distinguish places.
/// There are as many rows as places, or `most` of them; shorter samples use the first. The shape stays. It
/// runs on the processor.
struct positions {
  int most = 0;
  initializer initial = uniform{};

  static constexpr std::string_view name = "positions";
  static constexpr bool each_place = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const {
    return most == 0 || most >= in.height * in.width ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"rows", {most > 0 ? most : in.height * in.width, in.channels}, initial});
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    std::size_t const n = a.in.size();
    for (std::size_t first = 0; first < a.x.size(); first += n) {
      std::size_t const row = p.decoding ? std::size_t(p.decoding->rows[first / n].place) * n : 0;
      p.device.add(activation::none, a.x.subspan(first, n), a.parameters.subspan(row, n),
                   a.y.subspan(first, n));
    }
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = a.in.size();
    if (!a.dx.empty()) p.device.copy(a.dy, a.dx);
    if (a.gradients.empty()) return;
    auto const used = a.gradients.first(n);
    std::ranges::fill(a.gradients.subspan(n), T(0));
    p.device.copy(view<T>(a.dy).first(n), used);
    for (std::size_t first = n; first < a.dy.size(); first += n)
      p.device.add(activation::none, used, view<T>(a.dy).subspan(first, n), used);
  }
};

/// Adds sines and cosines of the place p, which are not trained. The first half of the channels gets
/// sin(p · r_i), the second cos(p · r_i). The rates are r_i = 10000^(−i / half). (Vaswani et al., "Attention
/// is all you need", 2017; the order is that of tensor2tensor.) The number of channels must be even; the
/// shape stays. It runs on the processor.
struct sinusoidal_positions {
  static constexpr std::string_view name = "sinusoidal_positions";
  static constexpr bool each_place = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const { return in.channels % 2 == 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return in; }
  constexpr std::size_t scratch(shape in, pass_size) const { return in.size(); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = a.in.size(), channels = std::size_t(a.in.channels), half = channels / 2;
    auto const rows = p.scratch.first(n);
    auto const waves = [&](std::size_t first_place) {
      for (std::size_t i = 0; i < half; ++i) {
        double const rate = std::pow(10'000.0, -double(i) / double(half));
        for (std::size_t row = 0; row < n / channels; ++row) {
          rows[row * channels + i] = T(std::sin(double(first_place + row) * rate));
          rows[row * channels + half + i] = T(std::cos(double(first_place + row) * rate));
        }
      }
    };
    if (!p.decoding) waves(0);
    for (std::size_t first = 0; first < a.x.size(); first += n) {
      if (p.decoding) waves(std::size_t(p.decoding->rows[first / n].place));
      p.device.add(activation::none, a.x.subspan(first, n), rows, a.y.subspan(first, n));
    }
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.copy(a.dy, a.dx);
  }
};

}  // namespace edl::nn
