// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/controller/speed_curve.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE speed_curve::speed_curve(std::vector<measured_speed> measured) : measured_(std::move(measured)) {
  std::erase_if(measured_, [](measured_speed const& m) {
    return m.workers < 1 || !(m.records_per_s > 0) || !std::isfinite(m.records_per_s);
  });
  std::stable_sort(measured_.begin(), measured_.end(),
                   [](auto& a, auto& b) { return a.workers < b.workers; });
  // Of two measurements of one size the later one counts.
  std::vector<measured_speed> last;
  for (measured_speed const& m : measured_) {
    if (!last.empty() && last.back().workers == m.workers) last.pop_back();
    last.push_back(m);
  }
  measured_ = std::move(last);
}

EDL_INLINE double speed_curve::at(int n) const {
  if (n < 1) return 0;
  if (measured_.empty()) return n;
  if (measured_.size() == 1) return measured_[0].records_per_s * n / measured_[0].workers;
  auto const above = std::lower_bound(measured_.begin(), measured_.end(), n,
                                      [](auto& m, int size) { return m.workers < size; });
  if (above != measured_.end() && above->workers == n) return above->records_per_s;
  auto const right =
      std::clamp<std::ptrdiff_t>(above - measured_.begin(), 1, std::ptrdiff_t(measured_.size()) - 1);
  measured_speed const &a = measured_[std::size_t(right - 1)], &b = measured_[std::size_t(right)];
  double const ta = 1 / a.records_per_s, tb = 1 / b.records_per_s;
  double const divided = std::max(0.0, (ta - tb) / (1.0 / a.workers - 1.0 / b.workers));
  // Noise must not promise more than one worker's worth for one worker.
  if (n > b.workers)
    return std::min(1 / std::max(tb - divided * (1.0 / b.workers - 1.0 / n), tb * 1e-3),
                    n * b.records_per_s / b.workers);
  if (n < a.workers)
    return std::max(1 / (ta + divided * (1.0 / n - 1.0 / a.workers)), n * a.records_per_s / a.workers);
  return 1 / (ta + (tb - ta) * (1.0 / n - 1.0 / a.workers) / (1.0 / b.workers - 1.0 / a.workers));
}

EDL_INLINE int speed_curve::useful(int most) const {
  int best = 0;
  double speed = 0;
  for (measured_speed const& m : measured_) {
    if (m.workers > most) break;
    if (best > 0 && m.records_per_s < speed * (1 + 0.01 * (m.workers - best))) continue;
    best = m.workers;
    speed = m.records_per_s;
  }
  // What is above the best measured size is worth a try, unless the largest measured one says that it is not.
  return best == 0 || best == measured_.back().workers || measured_.back().workers > most ? most : best;
}

}  // namespace edl::controller
