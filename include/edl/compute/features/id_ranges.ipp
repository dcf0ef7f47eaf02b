// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/compute/features/id_ranges.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::features::detail {

EDL_INLINE void refuse_id(std::size_t column, std::int64_t id, std::int64_t size) {
  throw data_error(fmt::format("column {} of the id ranges has ids from 0 to {}, and {} is none of them",
                               column, size - 1, id));
}

}  // namespace edl::features::detail
