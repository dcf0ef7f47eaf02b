// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/cluster/autoscaler/speed_curve.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler {

EDL_INLINE speed_curve::speed_curve(std::vector<measured_speed> measured) : measured_(std::move(measured)) {
  std::erase_if(measured_, [](measured_speed const& m) {
    return m.workers < 1 || !(m.records_per_s > 0) || !std::isfinite(m.records_per_s);
  });
  std::stable_sort(measured_.begin(), measured_.end(),
                   [](auto& a, auto& b) { return a.workers < b.workers; });
  // Of two measurements of one size, the later one counts.
  std::vector<measured_speed> last;
  for (measured_speed const& m : measured_) {
    if (!last.empty() && last.back().workers == m.workers) last.pop_back();
    last.push_back(m);
  }
  measured_ = std::move(last);
  if (measured_.empty()) return;
  // Least squares of the relative error; both parts must not be negative.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (measured_speed const& m : measured_) {
    double const a = m.records_per_s, b = a / m.workers;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  double const det = aa * bb - ab * ab;
  fixed_ = measured_.size() > 1 && det > 1e-12 * aa * bb ? (a1 * bb - b1 * ab) / det : 0;
  if (fixed_ > 0) divided_ = (aa * b1 - ab * a1) / det;
  if (fixed_ <= 0) fixed_ = 0, divided_ = b1 / bb;
  if (divided_ <= 0) fixed_ = a1 / aa, divided_ = 0;
}

EDL_INLINE double speed_curve::at(int n) const {
  if (n < 1) return 0;
  if (measured_.empty()) return n;
  measured_speed const &first = measured_.front(), &last = measured_.back();
  if (n >= last.workers) return last.records_per_s * step(last.workers) / step(n);
  if (n <= first.workers) return first.records_per_s * step(first.workers) / step(n);
  auto const above = std::lower_bound(measured_.begin(), measured_.end(), n,
                                      [](auto& m, int size) { return m.workers < size; });
  if (above->workers == n) return above->records_per_s;
  measured_speed const &a = *std::prev(above), &b = *above;
  double const ta = 1 / a.records_per_s, tb = 1 / b.records_per_s;
  return 1 / (ta + (tb - ta) * (1.0 / n - 1.0 / a.workers) / (1.0 / b.workers - 1.0 / a.workers));
}

EDL_INLINE std::vector<double> speed_curve::gains(int most) const {
  // The upper hull of (n, speed): slopes between its corners fall.
  std::vector<std::pair<int, double>> hull{{0, 0}};
  auto const slope = [](auto const& a, auto const& b) { return (b.second - a.second) / (b.first - a.first); };
  for (int n = 1; n <= most; ++n) {
    std::pair const next(n, at(n));
    while (hull.size() > 1 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), next))
      hull.pop_back();
    hull.push_back(next);
  }
  std::vector<double> all;
  for (std::size_t i = 1; i < hull.size(); ++i)
    all.insert(all.end(), std::size_t(hull[i].first - hull[i - 1].first),
               slope(hull[i - 1], hull[i]) / at(1));
  invariant(all.size() == std::size_t(std::max(most, 0)), "each worker has its gain");
  return all;
}

EDL_INLINE int speed_curve::useful(int most, double margin) const {
  for (measured_speed const& m : measured_) {
    bool tried = false, gains = false;
    for (measured_speed const& more : measured_) {
      if (more.workers <= m.workers || more.workers > most) continue;
      tried = tried || 2 * more.workers >= 3 * m.workers;
      gains =
          gains || more.records_per_s > m.records_per_s * (1 + margin + 0.01 * (more.workers - m.workers));
    }
    if (tried && !gains) return std::min(m.workers, most);
  }
  return most;
}

}  // namespace edl::autoscaler
