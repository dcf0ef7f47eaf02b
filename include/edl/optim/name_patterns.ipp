// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>

#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/optim/name_patterns.hpp"

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
    std::string const near = cli::nearest(pattern, names);
    throw error(fmt::format("{}: '{}' matches no {}; {}", what, pattern, kind,
                            near.empty() ? fmt::format("these are {}", fmt::join(names, ", "))
                                         : fmt::format("did you mean {}?", near)));
  }
  return matched;
}

}  // namespace edl
