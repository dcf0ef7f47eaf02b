// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace edl {

/// A number with the noun that it counts, for a reader: `1 record`, `2 records`. Pass `many` if the plural is
/// not `one` with an s.
template <std::integral T>
std::string counted(T n, std::string_view one, std::string_view many = {}) {
  if (n == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", n, one) : fmt::format("{} {}", n, many);
}

}  // namespace edl
