// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edl/compute/device/geometry.hpp"

namespace edl::nn {

/// What becomes of the results between layers until the backward pass needs them.
enum class storage {
  recomputed,  ///< those of normalisations and gelus are not kept, but computed again, which costs next to
               ///< nothing
  float32,     ///< all are kept as they are
  bfloat16,    ///< all are kept as bfloat16: half the memory, 8 bits of precision
  compact      ///< as bfloat16, and those of batch normalisations and gelus are computed again from such
};

/// What becomes of them where the host does not see the device's memory, of which no part is loaded alone.
constexpr storage on_accelerator(storage s) { return s == storage::compact ? storage::recomputed : s; }

/// Their names as flags say them, in order.
constexpr std::array<std::string_view, 4> names(storage) {
  return {"recomputed", "float32", "bfloat16", "compact"};
}

/// What memory is asked for: so many samples, and what becomes of their results. Wherever only the number
/// matters, it is an int.
struct pass_size {
  int samples = 0;
  storage keep = storage::recomputed;
  /// Layers that can pass samples on as bfloat16 do.
  bool narrow = false;
  /// Of the layer that is asked what it takes: the sides that are narrow.
  bfloat16_io sides{};
  /// Of a chain, an element for each step: where the group ends whose forward pass is computed again in the
  /// backward pass; 0: it is not. Null: none is (`memory_plan`).
  std::uint16_t const* again = nullptr;
  /// `again` is of the chain that is step number `inner - 1`; 0: of the chain itself.
  std::uint16_t inner = 0;
  /// Memory matters more than time: gradients that can lie over what they are of do.
  bool tight = false;

  constexpr pass_size(int n = 0, storage k = storage::recomputed, bool as_bfloat16 = false)
      : samples(n), keep(k), narrow(as_bfloat16 && k != storage::float32) {}  // NOLINT: an int is one
  constexpr operator int() const { return samples; }                          // NOLINT

  /// The same where no samples are narrow.
  constexpr pass_size all_wide() const {
    pass_size of = *this;
    of.narrow = false;
    of.sides = {};
    return of;
  }
  /// The same for a layer of these sides within a chain.
  constexpr pass_size of_sides(bfloat16_io s) const {
    pass_size of = *this;
    of.sides = s;
    of.again = nullptr;
    of.inner = 0;
    return of;
  }
  /// The same for step i of a chain.
  constexpr pass_size of_step(std::size_t i, bfloat16_io s) const {
    pass_size of = of_sides(s);
    if (inner == i + 1) of.again = again;
    return of;
  }
};

}  // namespace edl::nn
