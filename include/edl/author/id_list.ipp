// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edl/author/id_list.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE std::size_t id_list::size() {
  while (size_ < ids_.size() && ids_[size_] >= 0) ++size_;
  return size_;
}

EDL_INLINE void id_list::add(std::int64_t id, float weight) {
  if (id < 0 || id >= embedding_geometry::most)
    throw data_error(fmt::format("input '{}': {} is not an id: ids are from 0 to {}", name_, id,
                                 embedding_geometry::most - 1));
  if (!std::isfinite(weight))
    throw data_error(fmt::format("input '{}': the weight {} of id {} is not a number", name_, weight, id));
  std::size_t const at = size();
  if (at == ids_.size())
    throw data_error(fmt::format(
        "input '{}': the record has more than {} ids; weighted_ids{{.most}} of the network sets the limit",
        name_, ids_.size()));
  ids_[at] = float(id);
  weights_[at] = weight;
}

EDL_INLINE void id_list::clear() {
  std::ranges::fill(ids_, -1.0f);
  std::ranges::fill(weights_, 0.0f);
  size_ = 0;
}

}  // namespace edl
