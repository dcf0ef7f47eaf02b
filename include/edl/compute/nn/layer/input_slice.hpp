// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// One named input of a network of several (`inputs`), cut out of the whole row of a sample. `Ids`: it is
/// ids, for an embedding.
template <bool Ids>
struct input_slice {
  int first = 0;      ///< its offset in the row
  shape whole, part;  ///< of the row, and of this input

  static constexpr std::string_view name = "input";
  static constexpr bool gives_ids = Ids;
  /// Devices may store results between layers as bfloat16, which cannot represent all ids.
  static constexpr bool portable = !Ids;
  static constexpr bool reads_y = false;

  constexpr fit check(shape in) const { return in == whole ? fit::fits : fit::not_at_the_start; }
  constexpr shape output(shape) const { return part; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.copy_columns(std::size_t(a.batch), part.size(), a.x, std::size_t(first), whole.size(), a.y, 0,
                          part.size());
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    p.device.elementwise_forward(elementwise::scale, 0, a.x, a.dx);  // no gradient goes to the other inputs
    p.device.copy_columns(std::size_t(a.batch), part.size(), a.dy, 0, part.size(), a.dx, std::size_t(first),
                          whole.size());
  }
};

}  // namespace edl::nn
