// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/author/label.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::detail {

EDL_INLINE void refuse_labels(std::size_t got, std::size_t wanted) {
  throw data_error(
      fmt::format("the model's feed made {} of a record, the loss takes {}", counted(got, "label"), wanted));
}

}  // namespace edl::detail
