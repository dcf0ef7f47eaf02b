// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"

namespace edl::autoscaler {

/// Speed as a function of the number of workers, from measurements. The model of a step's time is fixed +
/// divided / n (Amdahl's law). Between two measured sizes it is fitted to these two, beyond them to all. A
/// single measured size is assumed to scale linearly. Thread safety: const.
class speed_curve {
 public:
  /// Ignores sizes below 1 and speeds that are not positive.
  explicit speed_curve(std::vector<measured_speed> measured);

  bool known() const { return !measured_.empty(); }
  int largest() const { return known() ? measured_.back().workers : 0; }

  /// Records per second with n workers; relative to one worker if nothing was measured. 0 for n < 1.
  double at(int n) const;

  /// The gain of each of the first `most` workers, relative to the speed of one; never more than the previous
  /// one's. If some workers slow a job down (e.g. the first on another node) and further ones speed it up,
  /// each gets its share of the total gain.
  std::vector<double> gains(int most) const;

  /// The size beyond which measurements show no gain: no size larger by half or more was faster by one per
  /// cent per worker, and by `margin` (relative). `most` if there is no such evidence. A negative margin
  /// requires less.
  int useful(int most, double margin = 0) const;

 private:
  double step(int n) const { return fixed_ + divided_ / n; }

  std::vector<measured_speed> measured_;
  double fixed_ = 0, divided_ = 1;  ///< of all together
};

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/speed_curve.ipp"
#endif
