// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/shape.hpp"

namespace edl::nn {

/// Which places of a sample are padding, according to the input of `masked`: places with a certain id, or
/// places after a certain number. By itself it is a mask of ids, e.g. `padding_mask{.id = 3}`.
/// `in.mask<"name">` gives the mask of one of several inputs.
struct padding_mask {
  int id = 0;              ///< the id of places that are padding
  bool by_length = false;  ///< the input is not ids, but the number of places that count
  int first = 0;           ///< offset of the ids or the number in the row of a sample
  int count = 0;           ///< places of a sample; 0: the number of ids in the input
  int row = 0;             ///< the length of that row; 0: the input is only ids

  friend constexpr bool operator==(padding_mask const&, padding_mask const&) = default;

  constexpr int places(shape in) const { return count > 0 ? count : in.channels; }
  constexpr bool fits(shape in) const { return in.flat() && (row == 0 || in.channels == row); }

  /// Whether a place of the sample in this row counts.
  template <class T>
  constexpr bool counts(T const* of, std::size_t place) const {
    return by_length ? T(place) < of[first] : of[std::size_t(first) + place] != T(id);
  }
};

}  // namespace edl::nn
