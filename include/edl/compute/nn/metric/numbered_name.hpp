// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace edl::detail {

/// "top_5_accuracy" of "top_", 5 and "_accuracy", ended by a 0; at most 63 characters.
constexpr auto numbered_name(std::string_view before, int number, std::string_view after) {
  std::array<char, 64> name{};
  std::array<char, 12> digits{};
  std::size_t at = 0, count = 0;
  for (char c : before) name[at++] = c;
  do digits[count++] = char('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) name[at++] = digits[--count];
  for (char c : after) name[at++] = c;
  return name;
}

}  // namespace edl::detail
