// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "edl/cli/nearest.hpp"
#include "edl/compute/optim/name_patterns.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE bool matches_name(std::string_view patterns, std::string const& name) {
  for (std::size_t begin = 0; begin < patterns.size();) {
    std::size_t const end = std::min(patterns.find(',', begin), patterns.size());
    std::string const pattern(patterns.substr(begin, end - begin));
    begin = end + 1;
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

namespace detail {

inline constexpr std::size_t most_near = 3, most_listed = 8;

/// The names that a pattern without a match most resembles. `batch_norm/*` means layers of a longer name.
inline std::vector<std::string> near_names(std::string const& pattern,
                                           std::vector<std::string> const& names) {
  std::vector<std::string> near;
  if (std::string const near_whole = cli::nearest(pattern, names); !near_whole.empty()) return {near_whole};
  std::string const begin = pattern.substr(0, pattern.find_first_of("/*?["));
  if (begin.size() < 3) return near;
  for (std::string const& name : names)
    if (near.size() < most_near && (name.starts_with(begin) || name.find('/' + begin) != name.npos))
      near.push_back(name);
  return near;
}

/// What there is instead: all of it where it is little.
inline std::string instead(std::string const& pattern, std::vector<std::string> const& names) {
  auto const near = near_names(pattern, names);
  std::string text = near.empty() ? "" : fmt::format("did you mean {}?", fmt::join(near, " or "));
  if (near.empty() && names.size() <= most_listed) return fmt::format("these are {}", fmt::join(names, ", "));
  if (near.empty())
    text = fmt::format("of {} names, the first are {};", names.size(),
                       fmt::join(std::span(names).first(most_near), ", "));
  return names.size() <= most_listed ? text : text + " --explain_plan lists all names";
}

}  // namespace detail

EDL_INLINE std::vector<bool> matching_names(std::vector<std::string> const& names, std::string_view patterns,
                                            std::string const& what, std::string_view kind) {
  std::vector<bool> matched(names.size());
  for (std::size_t begin = 0; begin <= patterns.size();) {
    std::size_t const end = std::min(patterns.find(',', begin), patterns.size());
    std::string const pattern(patterns.substr(begin, end - begin));
    begin = end + 1;
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (::fnmatch(pattern.c_str(), names[i].c_str(), 0) == 0) any = matched[i] = true;
    if (any) continue;
    throw error(
        fmt::format("{}: '{}' matches no {}; {}", what, pattern, kind, detail::instead(pattern, names)));
  }
  return matched;
}

}  // namespace edl
