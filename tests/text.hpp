// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "edl/core/error.hpp"

/// What tests ask of texts, and of errors.

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// How often it stands there.
inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// What a usage_error says that `act` throws, or "accepted".
template <std::invocable Act>
std::string refusal(Act&& act) {
  try {
    act();
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "accepted";
}

/// What an edl::error says that `act` throws; empty if it throws nothing.
template <std::invocable Act>
std::string complaint(Act&& act) {
  try {
    act();
  } catch (edl::error const& e) {
    return e.what();
  }
  return {};
}
