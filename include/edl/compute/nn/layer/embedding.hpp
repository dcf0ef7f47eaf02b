// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A trained row for each id of a vocabulary. The network begins with `nn::ids{.count = c}`; ids are whole
/// numbers from 0 to vocabulary − 1. (c) → (1, c, width)
///
/// Its gradient, and an optimiser's step, cover the whole table. A job refuses invalid ids when it feeds
/// them. Other code that passes one gets an edl::error on the processor, and a row of NaN on a GPU.
struct embedding {
  int vocabulary = 0;
  int width = 0;
  initializer initial = uniform{};

  static constexpr std::string_view name = "embedding";
  static constexpr bool portable = true;
  static constexpr bool takes_ids = true, reads_y = false;

  constexpr fit check(shape) const {
    bool const good = vocabulary > 0 && vocabulary <= embedding_geometry::most && width > 0;
    return good ? fit::fits : fit::option_out_of_range;
  }
  constexpr embedding_geometry geometry(shape in) const { return {vocabulary, width, int(in.size())}; }
  constexpr shape output(shape in) const { return {1, int(in.size()), width}; }
  template <class Visit>
  constexpr void variables(shape, Visit&& visit) const {
    visit(variable_spec{"embeddings", {vocabulary, width}, initial});
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.embedding_forward(geometry(a.in), a.batch, a.x, a.parameters, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.embedding_backward(geometry(a.in), a.batch, a.x, a.dy, a.dx, a.gradients);
  }
};

}  // namespace edl::nn
