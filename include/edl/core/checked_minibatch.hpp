// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl {

/// What a minibatch was computed with, and what came of it, as digests (`digest`). Equal ones are equal bit
/// for bit.
struct checked_minibatch {
  std::uint32_t index = 0;     ///< in its task
  std::uint64_t version = 0;   ///< of the model
  std::uint64_t weights = 0;   ///< variables before the pass
  std::uint64_t gradient = 0;  ///< loss, gradients, change of the state; 0: only the weights are told
};

}  // namespace edl
