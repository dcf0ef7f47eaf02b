// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/master/health/slow_workers.hpp"

namespace edl::master {

EDL_INLINE std::vector<slow_workers::slow> slow_workers::look(membership const& workers, time_point now) {
  std::vector<slow> found;
  if (last_ && now - *last_ < options_.window) return found;
  last_ = now;
  std::vector<member const*> measured;
  for (auto const& [id, m] : workers.all()) {
    record& r = records_[id];
    if (r.incarnation != m.incarnation) r = {.incarnation = m.incarnation};
    if (m.trained.minibatches - r.passes >= options_.passes && m.last.pass > 0) measured.push_back(&m);
    r.passes = m.trained.minibatches;
  }
  std::erase_if(records_, [&](auto const& r) { return !workers.find(r.first); });
  for (member const* const m : measured) {
    std::vector<double> others;
    for (member const* const o : measured)
      if (o != m && o->kind == m->kind) others.push_back(o->last.pass);
    if (others.size() < options_.siblings) continue;
    auto const middle = others.begin() + std::ptrdiff_t(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    record& r = records_.at(m->id);
    double const times = m->last.pass / *middle;
    if (times <= options_.factor)
      r.windows = 0;
    else if (++r.windows == options_.windows)
      found.push_back({m->id, times});
  }
  return found;
}

}  // namespace edl::master
