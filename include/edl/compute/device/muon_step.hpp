// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace edl {

/// A step of Muon (edl/compute/optim/muon.hpp) on one matrix, by rows, with all that was worked out before.
struct muon_step {
  std::size_t rows = 0, columns = 0;
  float momentum = 0;
  bool nesterov = false;
  int iterations = 0;  ///< of Newton and Schulz
  std::array<double, 3> polynomial{};
  float keep = 1, rate = 0;  ///< w = keep · w − rate · O
};

}  // namespace edl
