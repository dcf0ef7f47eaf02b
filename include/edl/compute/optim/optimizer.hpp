// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl {

/// What an optimiser remembers for every weight: its name in checkpoints, and its value before the first
/// step.
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

/// An optimiser is a value: a rate and what `apply` does with it. That is one step of the rule on a span of
/// weights, element by element. So any cut of the weights into ranges gives the same. `step` is the number of
/// steps applied before, from 0; all spans are of one length. With `options_fit()` it says whether its
/// options are in their ranges.
template <class O>
concept optimizer = std::copy_constructible<O> &&
                    requires(O const o, std::span<float> weights, view<float> gradients,
                             std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
                      { o.learning_rate } -> std::convertible_to<float>;
                      { o.slots() } -> std::convertible_to<slot_list>;
                      o.apply(weights, gradients, slots, rate, step);
                    };

/// Instantiated for the optimiser of a model, so that the compiler's own words name it, and each part that it
/// lacks is one sentence.
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

}  // namespace edl
