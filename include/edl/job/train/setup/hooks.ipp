// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "edl/core/inline.hpp"
#include "edl/job/train/setup/hooks.hpp"

namespace edl {

EDL_INLINE double evaluation_report::metric(std::string_view name) const {
  auto const found = std::ranges::find(metrics, name, &std::pair<std::string, double>::first);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

namespace train {

EDL_INLINE std::string failed_hook(std::string_view name, std::uint64_t version) {
  std::string why = "it threw something other than a std::exception";
  try {
    throw;
  } catch (std::exception const& e) {
    why = e.what();
  } catch (...) {
  }
  return fmt::format(
      "the model's {} failed at version {}: {}; the job goes on, and this process does not call it again",
      name, version, why);
}

}  // namespace train
}  // namespace edl
