// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edl/core/span.hpp"

namespace edl {

class accelerator;  // edl/compute/device/accelerator.hpp

/// A model's variables (parameters, then state) and its optimiser's slots where the gradients are computed:
/// in the memory of a GPU. Steps are made there, so that neither gradients nor variables travel. Thread
/// safety: safe.
class arena {
 public:
  virtual ~arena() = default;

  /// Takes these from now on. Of the slots, one follows the other every `stride` elements.
  virtual void place(view<float> variables, view<float> slots, std::size_t stride) = 0;

  /// What they are now, in the same order.
  virtual void fetch(std::span<float> variables, std::span<float> slots) = 0;

  /// Holds nothing any more, until the next `place`.
  virtual void leave() = 0;

  /// A step with the gradients that were computed last, after which `step` have been made, from 0. The state
  /// has been changed already.
  virtual void step(float learning_rate, std::uint64_t step) = 0;

  /// What the members of a world sum, in the GPU's memory.
  struct summands {
    std::shared_ptr<accelerator> gpu;
    std::span<float> gradients, state_change;
  };

  /// From now on the gradients of a pass are to be summed with others' before a step. The pass leaves the
  /// state as it was, and its change beside the gradients. It puts marks (`accelerator::mark`) into its work.
  /// Number i + 1 stands where the gradients from number `borders[i]` on are final, for some of these, from
  /// the last to the first. Number `borders.size()` + 1 stands where all is there. `ready` is called for the
  /// former when it is known that the minibatch will count. Always the same borders, or none: not any more.
  virtual summands sum_with_others(std::vector<std::size_t> borders) = 0;

  /// The summands are sums, of minibatches each times its records, of which there are so many: makes them
  /// means, and changes the state. A `step` follows.
  virtual void average(std::uint64_t records) = 0;
};

}  // namespace edl
