// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"

namespace edl::controller {

/// Speed as a function of the number of workers, from what was measured. The time of a step is taken to be
/// fixed + divided / n, as Amdahl's law has it. Between two measured sizes these two tell it, beyond them all
/// together. One measured size is taken to scale without loss. Thread safety: const.
class speed_curve {
 public:
  /// Sizes below 1 and speeds that are not positive are left out.
  explicit speed_curve(std::vector<measured_speed> measured);

  bool known() const { return !measured_.empty(); }
  int largest() const { return known() ? measured_.back().workers : 0; }

  /// Records a second with n workers; relative to one worker when nothing was measured. 0 for n < 1.
  double at(int n) const;

  /// What each of the first `most` workers adds, relative to the speed of one; never more than the worker
  /// before it. Some workers may slow a job down (the first on another node, say) and some more speed it up.
  /// Then each adds its part of that.
  std::vector<double> gains(int most) const;

  /// The size above which more was measured to add nothing. None of half as many workers again, or more, was
  /// faster by one per cent a worker, and by `margin` (relative). `most` where nothing says so. A negative
  /// margin asks for less.
  int useful(int most, double margin = 0) const;

 private:
  double step(int n) const { return fixed_ + divided_ / n; }

  std::vector<measured_speed> measured_;
  double fixed_ = 0, divided_ = 1;  ///< of all together
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/speed_curve.ipp"
#endif
