// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/combiner.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A trained row for each id of a vocabulary; a sample's rows are combined into one. The network begins with
/// `ids`, whose weights are 1, or with `weighted_ids`, of which a sample may have any number. It ignores an
/// id of −1, and with `mask_zero` also 0. A sample without ids, or weights that sum to 0, gets zeros. (c) →
/// (width)
struct embedding_bag {
  int vocabulary = 0;
  int width = 0;
  nn::combiner combiner = nn::combiner::sum;
  bool mask_zero = false;
  initializer initial = uniform{};

  static constexpr std::string_view name = "embedding_bag";
  static constexpr bool takes_ids = true, takes_weights = true, reads_y = false;

  constexpr fit check(shape) const {
    bool const good = vocabulary > 0 && vocabulary <= embedding_geometry::most && width > 0;
    return good ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape) const { return {1, 1, width}; }
  template <class Visit>
  constexpr void variables(shape, Visit&& visit) const {
    visit(variable_spec{"embeddings", {vocabulary, width}, initial});
  }

  template <class D>
  void forward(pass<D>&, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::ranges::fill(a.y, T(0));
    each_id(a.in, a.batch, a.x, [&](std::size_t sample, std::size_t row, T weight) {
      T* const y = a.y.data() + sample * std::size_t(width);
      T const* const e = a.parameters.data() + row * std::size_t(width);
      for (std::size_t k = 0; k < std::size_t(width); ++k) y[k] += weight * e[k];
    });
  }
  template <class D>
  void backward(pass<D>&, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::ranges::fill(a.dx, T(0));  // ids have no gradient, and weights are data
    std::ranges::fill(a.gradients, T(0));
    each_id(a.in, a.batch, a.x, [&](std::size_t sample, std::size_t row, T weight) {
      T const* const dy = a.dy.data() + sample * std::size_t(width);
      T* const sum = a.gradients.data() + row * std::size_t(width);
      for (std::size_t k = 0; k < std::size_t(width); ++k) sum[k] += weight * dy[k];
    });
  }

 private:
  /// visit(sample, row, weight by which the row counts), in order.
  template <class T, class Visit>
  void each_id(shape in, int batch, view<T> x, Visit const& visit) const {
    auto const most = std::size_t(in.channels);
    bool const weighted = in.width > 1;
    embedding_geometry const rows{vocabulary, width, in.channels};
    for (std::size_t sample = 0; sample < std::size_t(batch); ++sample) {
      T const* const ids = x.data() + sample * in.size();
      auto const counts = [&](std::size_t i) { return rows.has(ids[i]) && !(mask_zero && ids[i] == T(0)); };
      auto const weight = [&](std::size_t i) { return weighted ? ids[most + i] : T(1); };
      weight_norm<T> norm(combiner);
      for (std::size_t i = 0; i < most; ++i)
        if (counts(i)) norm.add(weight(i));
      for (std::size_t i = 0; i < most; ++i)
        if (counts(i)) visit(sample, std::size_t(ids[i]), norm.reciprocal() * weight(i));
    }
  }
};

}  // namespace edl::nn
