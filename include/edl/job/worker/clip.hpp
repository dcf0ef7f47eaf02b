// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace edl::worker {

/// How the gradient of a minibatch is clipped before it is pushed.
struct clipping {
  float value = 0;  ///< each element is limited to ±value; 0: no limit
  float norm = 0;   ///< then all are scaled to at most this Euclidean norm; 0: no limit

  bool any() const { return value > 0 || norm > 0; }
};

/// Clips a gradient that consists of several parts. The norm is that of all parts together (Pascanu et al.,
/// 2013). It is summed in double precision and in a fixed order, so that equal gradients give bitwise equal
/// results. A gradient that is not finite stays so, because it is an error, not a large number.
void clip(clipping const& how, std::span<std::span<float> const> gradient);

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/clip.ipp"
#endif
