// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Normalises each group of neighbouring channels of a sample, over all its places, to mean 0 and variance 1.
/// Then y = gamma ∘ x̂ + beta by channel. (Wu and He, "Group normalization", ECCV 2018; Keras' defaults.) It
/// is independent of the batch and has no state. One group is the whole sample; with as many groups as
/// channels it is instance normalisation. It runs on the processor. The shape stays.
struct group_norm {
  int groups = 32;  ///< divides the channels
  float epsilon = 1e-3f;

  static constexpr std::string_view name = "group_normalization";
  static constexpr bool portable = false;
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const {
    if (groups < 1 || !(epsilon > 0)) return fit::option_out_of_range;
    return in.channels % groups == 0 ? fit::fits : fit::groups_do_not_divide_channels;
  }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    visit(variable_spec{"gamma", {in.channels}, constant{1}});
    visit(variable_spec{"beta", {in.channels}, constant{0}});
  }
  /// The mean and 1 / deviation of each group.
  constexpr std::size_t saved(shape, pass_size batch) const {
    return 2 * std::size_t(batch) * std::size_t(groups);
  }
  /// Four numbers for each channel.
  constexpr std::size_t scratch(shape in, pass_size) const { return 4 * rounded(std::size_t(in.channels)); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const c = std::size_t(a.in.channels);
    auto const [mean, scale, sum, squares] = rows(p.scratch, c);
    T const *const gamma = a.parameters.data(), *const beta = gamma + c;
    for (std::size_t sample = 0; sample < std::size_t(a.batch); ++sample) {
      std::size_t const first = sample * a.in.size(), end = first + a.in.size();
      T* const kept = a.saved.data() + 2 * sample * std::size_t(groups);
      std::fill_n(sum, c, T(0));
      for (std::size_t at = first; at < end; at += c) add(c, a.x.data() + at, sum);
      spread(a.in, sum, mean, [&](std::size_t g, T all) { return kept[2 * g] = all; });
      std::fill_n(squares, c, T(0));
      for (std::size_t at = first; at < end; at += c) add_squares(c, a.x.data() + at, mean, squares);
      spread(a.in, squares, scale,
             [&](std::size_t g, T all) { return kept[2 * g + 1] = 1 / std::sqrt(all + T(epsilon)); });
      for (std::size_t k = 0; k < c; ++k) scale[k] *= gamma[k];
      for (std::size_t at = first; at < end; at += c) {
        T const* const x = a.x.data() + at;
        T* const y = a.y.data() + at;
        for (std::size_t k = 0; k < c; ++k) y[k] = (x[k] - mean[k]) * scale[k] + beta[k];
      }
    }
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const c = std::size_t(a.in.channels), own = c / std::size_t(groups);
    // `sum` and `along`: sums of the incoming gradient, and of its product with the normalised input.
    auto const [mean, scale, sum, along] = rows(p.scratch, c);
    T const* const gamma = a.parameters.data();
    T *const dgamma = a.gradients.data(), *const dbeta = dgamma + c;
    std::ranges::fill(a.gradients, T(0));
    for (std::size_t sample = 0; sample < std::size_t(a.batch); ++sample) {
      std::size_t const first = sample * a.in.size(), end = first + a.in.size();
      T const* const kept = a.saved.data() + 2 * sample * std::size_t(groups);
      for (std::size_t k = 0; k < c; ++k) mean[k] = kept[2 * (k / own)], scale[k] = kept[2 * (k / own) + 1];
      std::fill_n(sum, c, T(0));
      std::fill_n(along, c, T(0));
      for (std::size_t at = first; at < end; at += c)
        add_products(c, a.x.data() + at, a.dy.data() + at, mean, scale, sum, along);
      for (std::size_t k = 0; k < c; ++k) {
        dbeta[k] += sum[k], dgamma[k] += along[k];
        sum[k] *= gamma[k], along[k] *= gamma[k];
      }
      if (a.dx.empty()) continue;
      spread(a.in, sum, sum, [](std::size_t, T all) { return all; });
      spread(a.in, along, along, [](std::size_t, T all) { return all; });
      for (std::size_t at = first; at < end; at += c) {
        T const *const x = a.x.data() + at, *const dy = a.dy.data() + at;
        T* const dx = a.dx.data() + at;
        for (std::size_t k = 0; k < c; ++k)
          dx[k] = scale[k] * (dy[k] * gamma[k] - sum[k] - (x[k] - mean[k]) * scale[k] * along[k]);
      }
    }
  }

 private:
  template <class T>
  struct four_rows {
    T *first, *second, *third, *fourth;
  };
  template <class T>
  static four_rows<T> rows(std::span<T> scratch, std::size_t c) {
    carver all(scratch);
    T *const a = all.aligned(c).data(), *const b = all.aligned(c).data(), *const d = all.aligned(c).data();
    return {a, b, d, all.aligned(c).data()};
  }

  // Separate loops with restrict pointers, which compilers vectorise.
  template <class T>
  static void add(std::size_t c, T const* __restrict x, T* __restrict sum) {
    for (std::size_t k = 0; k < c; ++k) sum[k] += x[k];
  }
  template <class T>
  static void add_squares(std::size_t c, T const* __restrict x, T const* __restrict mean,
                          T* __restrict squares) {
    for (std::size_t k = 0; k < c; ++k) squares[k] += (x[k] - mean[k]) * (x[k] - mean[k]);
  }
  template <class T>
  static void add_products(std::size_t c, T const* __restrict x, T const* __restrict dy,
                           T const* __restrict mean, T const* __restrict scale, T* __restrict sum,
                           T* __restrict along) {
    for (std::size_t k = 0; k < c; ++k) {
      sum[k] += dy[k];
      along[k] += dy[k] * (x[k] - mean[k]) * scale[k];
    }
  }

  /// For each group, applies `make` to the mean of its sums, and writes the result to all its channels.
  template <class T, class Make>
  void spread(shape in, T const* sums, T* to, Make&& make) const {
    std::size_t const own = std::size_t(in.channels) / std::size_t(groups);
    T const share = T(1) / T(std::size_t(in.height) * std::size_t(in.width) * own);
    for (std::size_t g = 0; g < std::size_t(groups); ++g) {
      T all = 0;
      for (std::size_t k = 0; k < own; ++k) all += sums[g * own + k];
      std::fill_n(to + g * own, own, make(g, all * share));
    }
  }
};

}  // namespace edl::nn
