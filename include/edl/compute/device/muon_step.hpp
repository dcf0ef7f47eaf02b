// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "edl/core/span.hpp"

namespace edl {

/// The parameters of a step of Muon that all matrices share (edl/compute/optim/muon.hpp).
struct muon_step {
  float momentum = 0;
  bool nesterov = false;
  int iterations = 0;  ///< of Newton and Schulz
  std::array<double, 3> polynomial{};
};

/// One of the matrices, stored by rows, with the values that were computed for it in advance.
struct muon_matrix {
  std::size_t rows = 0, columns = 0;
  float keep = 1, rate = 0;  ///< w = keep · w − rate · O
  float norm = 0;            ///< to which w is scaled first; 0: no scaling
  std::span<float> weights;
  view<float> gradients;
  std::span<float> momentum;
};

}  // namespace edl
