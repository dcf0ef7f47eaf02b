// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace edl::kubernetes {

/// A name of one part (DNS label of RFC 1123): lower case letters, digits and '-' inside, at most 63 of them.
/// Names of namespaces and containers, and of jobs, which become part of both.
constexpr bool is_label(std::string_view name) {
  auto const good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 63 || !good(name.front()) || !good(name.back())) return false;
  for (char const c : name)
    if (!good(c) && c != '-') return false;
  return true;
}

/// Such names, separated by '.', at most 253 characters: names of most objects.
constexpr bool is_subdomain(std::string_view name) {
  if (name.size() > 253) return false;
  for (std::size_t at = 0;;) {
    auto const end = name.find('.', at);
    if (end == std::string_view::npos) return is_label(name.substr(at));
    if (!is_label(name.substr(at, end - at))) return false;
    at = end + 1;
  }
}

/// Valid names of a container's variables, on servers of any version.
constexpr bool is_variable(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  for (char const c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '-' || c == '.'))
      return false;
  return true;
}

}  // namespace edl::kubernetes
