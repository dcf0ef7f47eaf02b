// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/optim/lookahead.hpp"

namespace edl::detail {

template <std::floating_point T>
void look_back(std::span<T> weights, std::span<T> slow, T keep) {
  T* __restrict const w = weights.data();
  T* __restrict const s = slow.data();
  T const rest = 1 - keep;
  for (std::size_t i = 0; i < weights.size(); ++i) w[i] = s[i] = keep * s[i] + rest * w[i];
}

#ifndef EDL_HEADER_ONLY
template void look_back(std::span<float>, std::span<float>, float);
template void look_back(std::span<double>, std::span<double>, double);
#endif

}  // namespace edl::detail
