// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edl/core/inline.hpp"
#include "edl/job/master/health/slow_starts.hpp"

namespace edl::master {

namespace detail {

// Rejects invalid numbers from outside.
inline bool is_measured(double speed) { return speed > 0 && std::isfinite(speed); }

}  // namespace detail

EDL_INLINE void slow_starts::compare(membership const& workers, double start_speeds::* speed,
                                     char const* what, std::vector<slow>& found) {
  for (auto& [id, r] : records_) {
    double const own = r.speeds.*speed;
    if (r.told || !detail::is_measured(own)) continue;
    std::string const& kind = workers.find(id)->kind;
    std::vector<double> others;
    for (auto const& [other, o] : records_)
      if (other != id && detail::is_measured(o.speeds.*speed) && workers.find(other)->kind == kind)
        others.push_back(o.speeds.*speed);
    if (others.size() < options_.siblings) continue;
    auto const middle = others.begin() + std::ptrdiff_t((others.size() - 1) / 2);
    std::nth_element(others.begin(), middle, others.end());
    if (own * options_.factor >= *middle) continue;
    r.told = true;
    found.push_back({id, fmt::format("is slow: when it started it {} {:.3g} MB/s, its siblings {:.3g} MB/s",
                                     what, own / 1e6, *middle / 1e6)});
  }
}

EDL_INLINE std::vector<slow_starts::slow> slow_starts::look(membership const& workers) {
  std::vector<slow> found;
  std::erase_if(records_, [&](auto const& r) { return !workers.find(r.first); });
  compare(workers, &start_speeds::disk, "wrote to its disk with", found);
  compare(workers, &start_speeds::network, "sent to the master with", found);
  return found;
}

}  // namespace edl::master
