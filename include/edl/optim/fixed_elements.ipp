// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstddef>

#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/optim/fixed_elements.hpp"

namespace edl {

EDL_INLINE std::vector<element_range> fixed_elements(parameter_layout const& layout,
                                                     std::string const& patterns) {
  std::vector<element_range> fixed;
  if (patterns.empty()) return fixed;
  std::vector<variable const*> trained;
  std::vector<std::string> names;
  for (variable const& v : layout.variables)
    if (v.offset < layout.parameters) trained.push_back(&v), names.push_back(v.name);
  std::vector<bool> matched(trained.size());
  for (std::size_t begin = 0; begin <= patterns.size();) {
    std::size_t const end = std::min(patterns.find(',', begin), patterns.size());
    std::string const pattern = patterns.substr(begin, end - begin);
    begin = end + 1;
    bool any = false;
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (::fnmatch(pattern.c_str(), names[i].c_str(), 0) == 0) any = matched[i] = true;
    if (any) continue;
    std::string const near = cli::nearest(pattern, names);
    throw error(fmt::format("--freeze={}: '{}' matches no variable that is trained; {}", patterns, pattern,
                            near.empty() ? fmt::format("these are {}", fmt::join(names, ", "))
                                         : fmt::format("did you mean {}?", near)));
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!matched[i]) continue;
    element_range const r{trained[i]->offset, trained[i]->offset + trained[i]->dims.size()};
    if (!fixed.empty() && fixed.back().last == r.first)
      fixed.back().last = r.last;
    else
      fixed.push_back(r);
  }
  if (std::ranges::find(matched, false) == matched.end() && layout.tables.empty())
    throw error(
        fmt::format("--freeze={}: nothing would be trained, because every variable matches", patterns));
  return fixed;
}

}  // namespace edl
