// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edl/compute/device/geometry.hpp"

namespace edl::nn {

/// How the results between layers are stored until the backward pass needs them.
enum class storage {
  recomputed,  ///< those of normalisations and gelus are not stored, but recomputed, which costs next to
               ///< nothing
  float32,     ///< all are stored as they are
  bfloat16,    ///< all are stored as bfloat16: half the memory, 8 bits of precision
  compact      ///< as bfloat16, and those of batch normalisations and gelus are recomputed from such
};

/// The storage on a device whose memory the host cannot address: it cannot load a part of it alone.
constexpr storage on_accelerator(storage s) { return s == storage::compact ? storage::recomputed : s; }

/// Their names in flags, in order.
constexpr std::array<std::string_view, 4> names(storage) {
  return {"recomputed", "float32", "bfloat16", "compact"};
}

/// What memory is requested for: the number of samples, and how their results are stored. If only the number
/// matters, pass an int.
struct pass_size {
  int samples = 0;
  storage keep = storage::recomputed;
  /// Layers that can pass samples on as bfloat16 do.
  bool narrow = false;
  /// For the layer whose memory is computed: the sides that are narrow.
  bfloat16_io sides{};
  /// For a chain, an element per step: the end of the group whose forward pass is recomputed in the backward
  /// pass; 0: the step is not recomputed. Null: no step is (`memory_plan`).
  std::uint16_t const* again = nullptr;
  /// `again` is for the chain at step number `inner - 1`; 0: for the chain itself.
  std::uint16_t inner = 0;
  /// Memory matters more than time: a gradient overwrites its result where it can.
  bool tight = false;

  constexpr pass_size(int n = 0, storage k = storage::recomputed, bool as_bfloat16 = false)
      : samples(n), keep(k), narrow(as_bfloat16 && k != storage::float32) {}  // NOLINT: an int is one
  constexpr operator int() const { return samples; }                          // NOLINT

  /// The same without narrow samples.
  constexpr pass_size all_wide() const {
    pass_size of = *this;
    of.narrow = false;
    of.sides = {};
    return of;
  }
  /// The same for a layer with these sides within a chain.
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
