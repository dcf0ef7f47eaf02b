// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/author/class_list.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE void class_list::refuse(std::size_t number) const {
  throw data_error(fmt::format(
      "the record has more than {} labels, which is how many places the network's output has: cut "
      "them in `feed` (number {}, from 0, is one too many)",
      size(), number));
}

EDL_INLINE void class_list::refuse(std::size_t number, std::int64_t label) {
  throw data_error(fmt::format("label {} of place {} is out of range: a network cannot have so many outputs",
                               label, number));
}

}  // namespace edl
