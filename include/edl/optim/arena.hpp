// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/core/span.hpp"

namespace edl {

/// A model's variables (parameters, then state) and its optimiser's slots where the gradients are computed:
/// in the memory of a GPU. Steps are made there, so that neither gradients nor variables travel. Thread
/// safety: one thread.
class arena {
 public:
  virtual ~arena() = default;

  /// Takes these from now on. Of the slots, one follows the other every `stride` elements.
  virtual void place(view<float> variables, view<float> slots, std::size_t stride) = 0;

  /// What they are now, in the same order.
  virtual void fetch(std::span<float> variables, std::span<float> slots) = 0;

  /// A step with the gradients that were computed last, after which `step` have been made, from 0. The state
  /// has been changed already.
  virtual void step(float learning_rate, std::uint64_t step) = 0;
};

}  // namespace edl
