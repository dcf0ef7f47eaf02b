// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/nn/expression/graph.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Elements [first, first + count) along an axis: channels of each place, or whole places. It runs on the
/// processor. (h, w, c) → (h, w, count), or → (1, count, c) of places
struct slice {
  int first = 0;
  int count = 1;
  axes along = channels;  ///< or `places`

  static constexpr std::string_view name = "slice";
  static constexpr bool portable = false;  // the rest's gradient is zero, which devices do not write yet
  static constexpr bool reads_y = false;

  constexpr bool treats_each_place() const { return along == channels; }
  constexpr fit check(shape in) const {
    if (along != channels && along != places) return fit::option_out_of_range;
    return wrong(in).none() ? fit::fits : fit::tensors_do_not_fit;
  }
  constexpr expression::mistake wrong(shape in) const {
    int const all = along == channels ? in.channels : in.height * in.width;
    if (first >= 0 && count > 0 && first <= all - count) return {};
    return {expression::mistake_kind::outside_of_slice, 0, in, {1, first, count}};
  }
  constexpr shape output(shape in) const {
    return along == channels ? shape{in.height, in.width, count} : shape{1, count, in.channels};
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const [rows, row, begin, own] = extents_of(a.in, a.x.size());
    p.device.copy_columns(rows, own, a.x, begin, row, a.y, 0, own);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    auto const [rows, row, begin, own] = extents_of(a.in, a.dx.size());
    std::ranges::fill(a.dx, typename D::scalar(0));
    p.device.copy_columns(rows, own, a.dy, 0, own, a.dx, begin, row);
  }

 private:
  /// Of a matrix some of whose columns it is.
  struct columns {
    std::size_t rows, row, begin, own;
  };
  constexpr columns extents_of(shape in, std::size_t all) const {
    std::size_t const unit = along == channels ? 1 : std::size_t(in.channels),
                      row = along == channels ? std::size_t(in.channels) : in.size();
    return {all / row, row, std::size_t(first) * unit, std::size_t(count) * unit};
  }
};

}  // namespace edl::nn
