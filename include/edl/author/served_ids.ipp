// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/author/served_ids.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE void served_ids::refuse(std::size_t number) const {
  throw data_error(
      fmt::format("input '{}' has ids 0 to {} of a record, and `feed` sets number {}: raise `count` in "
                  "the network",
                  name_, ids_.size() - 1, number));
}

EDL_INLINE void served_ids::refuse_count(std::size_t got) const {
  throw data_error(fmt::format("input '{}' has {} of a record, and `feed` gives it {}", name_,
                               counted(size(), "id"), got));
}

}  // namespace edl
