// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/graph_joint.hpp"
#include "edl/compute/nn/layer/graph_of.hpp"

namespace edl::nn {

/// The ids of an input as the numbers of `vocabulary` places, for `gathered`. A job refuses others when it
/// feeds them.
struct row_ids {
  int vocabulary = 0;

  static constexpr std::string_view name = "ids";
  static constexpr bool portable = false;  // a bfloat16 cannot represent all ids
  static constexpr bool takes_ids = true, reads_y = false;

  constexpr fit check(shape) const {
    return vocabulary > 0 && vocabulary <= embedding_geometry::most ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.copy(a.x, a.y);
  }
  template <class D>
  void backward(pass<D>&, backward_args<typename D::scalar> const& a) const {
    std::ranges::fill(a.dx, typename D::scalar(0));
  }
};

/// Places of the first operand by the numbers in the second. (h, w, c), (n) → (1, n, c)
struct gathered {
  static constexpr std::string_view name = "gather";
  static constexpr bool joins = true, portable = false;
  static constexpr bool reads_operands = true, reads_y = false, overwrites_dy = false, mixes_places = true;

  constexpr shape output(std::span<shape const> in, expression::mistake&) const {
    return {1, int(in[1].size()), in[0].channels};
  }
  template <class D, class T>
  void forward(pass<D>& p, joint_args<T> const& a, std::span<T> y) const {
    each_sample(a, y.size(), [&](std::size_t s, auto const& g, std::size_t rows, std::size_t size) {
      p.device.embedding_forward(g, 1, ids_of(a, s), a.x[0].subspan(s * rows, rows),
                                 y.subspan(s * size, size));
    });
  }
  /// What several ids take adds up.
  template <class D, class T>
  void backward(pass<D>& p, joint_args<T> const& a, view<T>, view<T> dy, std::size_t i,
                std::span<T> dx) const {
    if (i > 0) std::ranges::fill(dx, T(0));
    if (i > 0 || dx.empty()) return;
    each_sample(a, dy.size(), [&](std::size_t s, auto const& g, std::size_t rows, std::size_t size) {
      p.device.embedding_backward(g, 1, ids_of(a, s), dy.subspan(s * size, size), std::span<T>(),
                                  dx.subspan(s * rows, rows));
    });
  }

 private:
  template <class T>
  static view<T> ids_of(joint_args<T> const& a, std::size_t sample) {
    return a.x[1].subspan(sample * a.in[1].size(), a.in[1].size());
  }
  template <class T, class Visit>
  static void each_sample(joint_args<T> const& a, std::size_t all, Visit const& visit) {
    shape const from = a.in[0];
    embedding_geometry const g{from.height * from.width, from.channels, int(a.in[1].size())};
    for (std::size_t s = 0; s < a.batch; ++s) visit(s, g, from.size(), all / a.batch);
  }
};

/// Within the function of a network: places of a result, in the order of the ids of an input, which are
/// numbers of its places from 0 on. The gradients of a place that several ids name add up. It runs on the
/// processor. (h, w, c), ids of n → (1, n, c)
template <class Result, class Ids>
constexpr auto gather(Result const& x, Ids const& ids) {
  constexpr bool right = detail::is_result<Result> && !detail::is_ids<Result> && detail::is_ids<Ids>;
  static_assert(right || detail::is_said<Result, Ids>,
                "edl: `nn::gather(x, ids)` is of a result and of an input that is an `nn::ids`: "
                "`nn::inputs(nn::input<\"at\">(nn::ids{.count = 3}), …)`");
  if constexpr (right) {
    shape const from = x.shape();
    return detail::join_by(0, gathered{}, x, Ids(ids) | row_ids{from.height * from.width});
  } else {
    return x;
  }
}

}  // namespace edl::nn
