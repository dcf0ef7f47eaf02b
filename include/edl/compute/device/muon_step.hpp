// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "edl/core/span.hpp"

namespace edl {

/// What is the same for all matrices in a step of Muon (edl/compute/optim/muon.hpp).
struct muon_step {
  float momentum = 0;
  bool nesterov = false;
  int iterations = 0;  ///< of Newton and Schulz
  std::array<double, 3> polynomial{};
};

/// One of them, by rows, with all that was worked out before.
struct muon_matrix {
  std::size_t rows = 0, columns = 0;
  float keep = 1, rate = 0;  ///< w = keep · w − rate · O
  float norm = 0;            ///< that w is scaled to before; 0: it keeps its own
  std::span<float> weights;
  view<float> gradients;
  std::span<float> momentum;
};

}  // namespace edl
