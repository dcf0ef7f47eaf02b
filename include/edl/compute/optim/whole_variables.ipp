// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

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

}  // namespace edl
