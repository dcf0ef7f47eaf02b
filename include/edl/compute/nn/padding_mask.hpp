// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/shape.hpp"

namespace edl::nn {

/// Which places of a sample are padding, by what comes into `masked`: those that have an id, or those behind
/// a number of places. By itself it is the mask of ids alone, e.g. `padding_mask{.id = 3}`. `in.mask<"name">`
/// gives the mask of one of several inputs.
struct padding_mask {
  int id = 0;              ///< the id of places that are padding
  bool by_length = false;  ///< no ids, but one number, of places that count
  int first = 0;           ///< where ids or number stand in the row of a sample
  int count = 0;           ///< places of a sample; 0: as many as ids come in
  int row = 0;             ///< the length of that row; 0: ids alone come in

  constexpr int places(shape in) const { return count > 0 ? count : in.channels; }
  constexpr bool fits(shape in) const { return in.flat() && (row == 0 || in.channels == row); }

  /// Whether a place counts, of a sample that is this row.
  template <class T>
  constexpr bool counts(T const* of, std::size_t place) const {
    return by_length ? T(place) < of[first] : of[std::size_t(first) + place] != T(id);
  }
};

}  // namespace edl::nn
