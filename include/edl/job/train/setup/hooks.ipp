// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "edl/core/inline.hpp"
#include "edl/job/train/setup/hooks.hpp"

namespace edl {

EDL_INLINE double evaluation_report::metric(std::string_view name) const {
  auto const found = std::ranges::find(metrics, name, &std::pair<std::string, double>::first);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

EDL_INLINE std::string train::failed_hook(std::string_view name, std::uint64_t version,
                                          std::string_view why) {
  return fmt::format(
      "the model's {} failed at version {}: {}; the job goes on, and this process does not call it again",
      name, version, why);
}

}  // namespace edl
