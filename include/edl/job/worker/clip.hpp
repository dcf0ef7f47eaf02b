// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace edl::worker {

/// How the gradient of a minibatch is bounded before it is pushed.
struct clipping {
  float value = 0;  ///< each element is cut to ±value; 0: none is
  float norm = 0;   ///< then all are scaled, so that their Euclidean norm is this at most; 0: they are not

  bool any() const { return value > 0 || norm > 0; }
};

/// Bounds a gradient that lies in several parts. The norm is that of all parts together (Pascanu et al.,
/// 2013). It is summed in double precision and in one order, so that equal gradients give equal bits. A
/// gradient that is not finite stays so: it is an error, and not a large number.
void clip(clipping const& how, std::span<std::span<float> const> gradient);

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/clip.ipp"
#endif
