// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace edl {

/// Times in the API server's notation, as seconds since 1970. Thread safety: safe.

/// "2026-11-20T10:39:00Z", with or without a fraction. Nothing if the text is not such a time.
std::optional<double> seconds_of(std::string_view text);

/// "2026-11-20T10:39:00Z"; with `micro` "2026-11-20T10:39:00.123456Z".
std::string stamp_of(double seconds, bool micro = false);

/// The time of this machine's clock.
double wall_seconds();

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/wall_time.ipp"
#endif
