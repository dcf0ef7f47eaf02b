// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "edl/compute/features/numbers.hpp"
#include "edl/compute/features/pieces.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::features {
namespace detail {

template <class T>
T number_of(std::string const& variable, std::string_view text) {
  try {
    if (T const n = to_number<T>(text, T(0)); !text.empty() && std::isfinite(double(n))) return n;
  } catch (data_error const&) {
  }
  throw usage_error(fmt::format("the environment's {} is '{}': expected {}", variable, printable(text, 64),
                                std::same_as<T, float> ? "a finite number" : "a whole number"));
}

}  // namespace detail

EDL_INLINE std::string variable_name(std::string_view column) {
  std::string name(column);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

EDL_INLINE statistics::statistics(std::string_view column)
    : statistics(column, [](char const* name) -> char const* { return std::getenv(name); }) {}

EDL_INLINE char const* statistics::find(std::string_view what, std::string& name) const {
  name = fmt::format("_{}_{}", column_, what);
  if (char const* const text = from_(name.c_str())) return text;
  name = fmt::format("_{}_{}", variable_name(column_), what);
  return from_(name.c_str());
}

EDL_INLINE float statistics::number(std::string_view what, float otherwise) const {
  std::string name;
  char const* const text = find(what, name);
  return text ? detail::number_of<float>(name, text) : otherwise;
}

EDL_INLINE std::vector<float> statistics::boundaries(std::vector<float> otherwise) const {
  std::string name;
  char const* const text = find("boundaries", name);
  if (!text) return otherwise;
  std::vector<float> all;
  for (std::string_view const piece : pieces(text)) all.push_back(detail::number_of<float>(name, piece));
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

EDL_INLINE std::int64_t statistics::distinct(std::int64_t otherwise) const {
  std::string name;
  char const* const text = find("distinct_count", name);
  return text ? detail::number_of<std::int64_t>(name, text) : otherwise;
}

EDL_INLINE std::string statistics::vocabulary(std::string otherwise) const {
  std::string name;
  char const* const text = find("vocab", name);
  return text ? text : std::move(otherwise);
}

}  // namespace edl::features
