// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/controller/cluster_view.hpp"

namespace edl::controller {

/// Speed as a function of the number of workers, from what was measured. Between two measured sizes the time
/// of a step is interpolated over 1/n, as Amdahl's law has it: t(n) = fixed + divided / n. Below and above
/// the measured sizes the nearest two decide, and one measured size is taken to scale without loss. Thread
/// safety: const.
class speed_curve {
 public:
  /// Sizes below 1 and speeds that are not positive are left out.
  explicit speed_curve(std::vector<measured_speed> measured);

  bool known() const { return !measured_.empty(); }

  /// Records a second with n workers; relative to one worker when nothing was measured. 0 for n < 1.
  double at(int n) const;

  /// Speed per worker, relative to that of one worker; in (0, 1] for a job that scales as most do.
  double efficiency(int n) const { return at(n) / (n * at(1)); }

  /// The least size that no measured larger size beats by more than one per cent a worker; `most` when none
  /// was measured that is slower than its worth.
  int useful(int most) const;

 private:
  std::vector<measured_speed> measured_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/controller/speed_curve.ipp"
#endif
