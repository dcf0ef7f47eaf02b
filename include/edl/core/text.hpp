// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace edl {

/// A view of the text without the blanks at its ends.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  auto const first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// The text with ASCII capitals in lower case.
constexpr std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return out;
}

/// Whether the text is one of the usual notations of a missing value.
constexpr bool says_missing(std::string_view text) {
  for (std::string_view const usual : {"NA", "N/A", "n/a", "null", "NULL", "None", "?", "-"})
    if (text == usual) return true;
  return false;
}

/// Parses the whole text as a number, in any locale; nothing if it is not one, or does not fit the type.
/// Leading blanks or '+' are not allowed. Floating-point numbers may be "inf" or "nan". `base`: for whole
/// numbers.
template <class T>
  requires std::integral<T> || std::floating_point<T>
std::optional<T> number_from(std::string_view text, std::same_as<int> auto... base) {
  T n{};
  auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n, base...);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

}  // namespace edl
