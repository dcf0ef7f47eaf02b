// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "edl/base/net/status.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE std::string_view name(status s) {
  static constexpr std::array<std::string_view, 10> names{
      "ok",      "cancelled",      "deadline exceeded", "unavailable", "unauthenticated",
      "invalid", "unknown method", "stale generation",  "not ready",   "internal"};
  auto const i = std::size_t(s);
  return i < names.size() ? names[i] : "unknown";
}

}  // namespace edl::net
