// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>

#include "edl/compute/optim/fixed_elements.hpp"
#include "edl/compute/optim/name_patterns.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE std::vector<element_range> fixed_elements(parameter_layout const& layout,
                                                     std::string const& patterns) {
  std::vector<element_range> fixed;
  if (patterns.empty()) return fixed;
  std::vector<variable const*> trained;
  std::vector<std::string> names;
  for (variable const& v : layout.variables)
    if (v.offset < layout.parameters) trained.push_back(&v), names.push_back(v.name);
  std::string const what = fmt::format("--freeze={}", patterns);
  auto const matched = matching_names(names, patterns, what, "variable that is trained");
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!matched[i]) continue;
    element_range const r{trained[i]->offset, trained[i]->offset + trained[i]->dims.size()};
    if (!fixed.empty() && fixed.back().last == r.first)
      fixed.back().last = r.last;
    else
      fixed.push_back(r);
  }
  if (std::ranges::find(matched, false) == matched.end() && layout.tables.empty())
    throw error(what + ": nothing would be trained, because every variable matches");
  return fixed;
}

}  // namespace edl
