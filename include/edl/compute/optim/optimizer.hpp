// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// A number that an optimiser stores for every weight: its name in checkpoints, and its value before the
/// first step.
struct slot {
  std::string_view name;
  float initial = 0;
};

/// The slots of an optimiser, at most four, in the order in which `apply` gets them.
struct slot_list {
  std::array<slot, 4> slots{};
  std::size_t count = 0;

  constexpr slot_list() = default;
  template <std::same_as<slot>... More>
    requires(sizeof...(More) < 4)
  constexpr explicit(false) slot_list(slot first, More... more)
      : slots{first, more...}, count(1 + sizeof...(More)) {}

  constexpr std::size_t size() const { return count; }
  constexpr slot const& operator[](std::size_t i) const { return slots[i]; }
  constexpr slot const* begin() const { return slots.data(); }
  constexpr slot const* end() const { return slots.data() + count; }
};

/// An optimiser is a value with a rate and `apply`, which makes one step of the rule on a span of weights,
/// element by element. So any division of the weights into ranges gives the same result. `step` is the number
/// of steps applied before, from 0; all spans have the same length. An optional `options_fit()` returns
/// whether its options are in their ranges.
template <class O>
concept optimizer = std::copy_constructible<O> &&
                    requires(O const o, std::span<float> weights, view<float> gradients,
                             std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
                      { o.learning_rate } -> std::convertible_to<float>;
                      { o.slots() } -> std::convertible_to<slot_list>;
                      o.apply(weights, gradients, slots, rate, step);
                    };

/// Instantiated for the optimiser of a model, so that the compiler's message names it; reports each missing
/// part in one sentence.
template <class O>
struct is_an_optimizer {
  static constexpr bool copies = std::copy_constructible<O>;
  static constexpr bool has_rate = requires(O const o) {
    { o.learning_rate } -> std::convertible_to<float>;
  };
  static constexpr bool has_slots = requires(O const o) {
    { o.slots() } -> std::convertible_to<slot_list>;
  };
  static constexpr bool has_apply = requires(
      O const o, std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
      float rate, std::uint64_t step) { o.apply(weights, gradients, slots, rate, step); };
  static_assert(copies, "edl: this optimizer cannot be copied");
  static_assert(has_rate, "edl: this optimizer has no `float learning_rate`");
  static_assert(has_slots, "edl: this optimizer has no `constexpr edl::slot_list slots() const`");
  static_assert(
      has_apply,
      "edl: this optimizer has no `void apply(std::span<float> weights, edl::view<float> gradients, "
      "std::span<std::span<float> const> slots, float rate, std::uint64_t step) const`");
};

/// Variables whose names match `names` are trained at `factor` times the rate. `names` are names or patterns
/// as in `--freeze`, separated by ','. With `steps` they are trained only in the first steps, and do not
/// change afterwards.
struct rate_of {
  std::string_view names;
  float factor = 1;
  std::uint64_t steps = 0;  ///< 0: all

  constexpr bool valid() const {
    return !names.empty() && factor > 0 && factor <= std::numeric_limits<float>::max();
  }
};

/// A model's rates for parts of itself: `edl::rates{{"conv2d*", 0.1f}, {"dense/kernel", 2.0f}}`. If several
/// match a variable, the last one counts; for `steps` the last one that sets it.
class rates {
 public:
  static constexpr std::size_t most = 16;

  constexpr rates() = default;
  constexpr rates(std::initializer_list<rate_of> parts) : count_(parts.size()) {
    std::copy_n(parts.begin(), std::min(parts.size(), most), parts_.begin());
  }

  constexpr std::span<rate_of const> parts() const { return std::span(parts_).first(std::min(count_, most)); }

  /// Whether there are at most `most` parts, all with names and with factors above 0.
  constexpr bool valid() const {
    return count_ <= most && std::ranges::all_of(parts(), [](rate_of const& r) { return r.valid(); });
  }

 private:
  std::array<rate_of, most> parts_{};
  std::size_t count_ = 0;
};

/// An optimiser that works on whole variables: it needs a norm of each, or its shape as a matrix.
/// `apply_whole` makes one step on variable `of`; the spans contain all of its elements. A model is then
/// divided only between variables. `apply` is for rows of tables, which are not part of a variable: element
/// by element, in any division. Variables are updated concurrently, so `apply_whole` must change only its
/// spans.
template <class O>
concept whole_optimizer =
    optimizer<O> && requires(O const o, variable const& of, std::span<float> weights, view<float> gradients,
                             std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
      o.apply_whole(of, weights, gradients, slots, rate, step);
    };

class accelerator;  // edl/compute/device/accelerator.hpp

/// A model's variables (parameters, then state) and its optimiser's slots in the memory of a GPU, where the
/// gradients are computed. It makes steps there, so that neither gradients nor variables are copied. Thread
/// safety: safe.
class arena {
 public:
  virtual ~arena() = default;

  /// Copies these to the GPU. Slots begin every `stride` elements.
  virtual void place(view<float> variables, view<float> slots, std::size_t stride) = 0;

  /// Copies their current values back, in the same order.
  virtual void fetch(std::span<float> variables, std::span<float> slots) = 0;

  /// Drops them, until the next `place`.
  virtual void leave() = 0;

  /// Makes a step with the gradients that were computed last. `step`: number of steps made before, from 0.
  /// The state has been changed already.
  virtual void step(float learning_rate, std::uint64_t step) = 0;

  /// The values that the members of a world sum, in the GPU's memory.
  struct summands {
    std::shared_ptr<accelerator> gpu;
    std::span<float> gradients, state_change;
  };

  /// From now on the gradients of a pass will be summed with others' before a step. The pass does not change
  /// the state, and writes its change beside the gradients. It inserts marks (`accelerator::mark`) into its
  /// work. Mark i + 1 means that the gradients from number `borders[i]` on are final, for some of the
  /// borders, from the last to the first. Mark `borders.size()` + 1 means that all are. `ready` is called for
  /// the former once it is certain that the minibatch counts. Pass the same borders always, or none to stop
  /// this.
  virtual summands sum_with_others(std::vector<std::size_t> borders) = 0;

  /// The summands now contain sums over minibatches, each weighted by its records; `records` is the total.
  /// Turns them into means, and changes the state. A `step` follows.
  virtual void average(std::uint64_t records) = 0;
};

}  // namespace edl
