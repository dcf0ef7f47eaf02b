// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>

#include "edl/compute/optim/name_patterns.hpp"
#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

EDL_INLINE whole_variables::whole_variables(parameter_layout const& layout) {
  for (variable const& v : layout.variables) {
    if (v.offset < layout.parameters) trained_.push_back(v);
    borders_.push_back(v.offset);
  }
  borders_.push_back(layout.size());
}

EDL_INLINE void whole_variables::each(element_range range,
                                      std::function<void(variable const&)> const& work) const {
  std::vector<variable const*> own;
  for (auto v = std::ranges::lower_bound(trained_, range.first, {}, &variable::offset);
       v != trained_.end() && v->offset < range.last; ++v)
    own.push_back(&*v);
  std::size_t covered = 0;
  for (variable const* v : own) covered += v->dims.size();
  if (covered != range.size())
    throw error(fmt::format("elements [{}, {}) cut a variable, which the optimizer needs whole", range.first,
                            range.last));
  if (!share_ || own.size() < 2) {
    for (variable const* v : own) work(*v);
    return;
  }
  std::ranges::stable_sort(own, std::ranges::greater{}, [](variable const* v) { return v->dims.size(); });
  std::atomic<std::size_t> next{0};
  std::exception_ptr failed;
  std::mutex of_failed;
  share_([&](int) {
    try {
      for (std::size_t i = next++; i < own.size(); i = next++) work(*own[i]);
    } catch (...) {
      std::lock_guard const lock(of_failed);
      failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
}

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
