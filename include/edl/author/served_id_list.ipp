// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "edl/author/served_id_list.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE void served_id_list::add(std::uint64_t id, float weight) {
  if (!std::isfinite(weight))
    throw data_error(fmt::format("the weight of an id of input '{}' is {}", name_, weight));
  if (weight == 0) return;
  if (size() == most())
    throw data_error(
        fmt::format("more than {} ids of a record for input '{}': raise `most` in the network, or cut the "
                    "list in `feed`",
                    most(), name_));
  ids_[size_] = id;
  weights_[size_++] = weight;
}

EDL_INLINE std::size_t served_id_list::size() {
  while (size_ < most() && weights_[size_] != 0) ++size_;
  return size_;
}

}  // namespace edl
