// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <xtensor/xtensor.hpp>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The picture of a record, without a copy: rows from the top, the channels of a place side by side. Valid as
/// long as the record.
struct picture {
  shape extents;
  view<float> values;  ///< extents.size() of them
};

/// The picture that a record of a folder of pictures has: the floats `name`, and the integers `height` and
/// `width`. A data_error if the record has none, or they do not belong together.
picture picture_of(example const& record, std::string_view name = "image");

/// Writes `from` in another size into `into`, which has to.size() elements. An axis that shrinks takes the
/// average over the area that a place covers. An axis that grows is linear between the centres of places,
/// and constant beyond the outermost. One channel becomes three by copies. Three become one by the weights of
/// ITU-R BT.601: 0.299, 0.587, 0.114. A data_error for other changes of the channels; a usage_error if `to`
/// is empty or `into` has another size. Thread safety: safe.
void resize(picture const& from, shape to, std::span<float> into);

/// The same as a tensor of its own.  // (to.height, to.width, to.channels)
inline xt::xtensor<float, 3> resized(picture const& from, shape to) {
  xt::xtensor<float, 3> into(
      std::array<std::size_t, 3>{std::size_t(to.height), std::size_t(to.width), std::size_t(to.channels)});
  resize(from, to, {into.data(), into.size()});
  return into;
}

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/picture.ipp"
#endif
