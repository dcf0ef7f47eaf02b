// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The values of a moved picture at places that no source place reaches.
enum class border : std::uint8_t {
  zeros,
  reflect,  ///< the picture mirrored at its edge, which is not repeated: 3 2 1 2 3, as numpy's "reflect"
};

/// Maps any `i` to the place in [0, n) that it mirrors: back and forth, without repeating the ends.
constexpr int reflected(int i, int n) {
  if (n == 1) return 0;
  int const period = 2 * (n - 1), at = (i % period + period) % period;
  return at < n ? at : period - at;
}

/// How a picture (height, width, channels) is transformed: moved, then mirrored, then every number (border
/// values included) multiplied by `contrast` and increased by `brightness`, then a square of it zeroed. Every
/// augmentation of edl/compute/data/augment.hpp can be expressed so. A device can therefore apply it while it
/// loads the picture. Devices receive a bytewise copy.
struct placement {
  std::int32_t down = 0, right = 0;  ///< places by which it moves, before it is mirrored
  std::int32_t hole_top = 0, hole_left = 0, hole_size = 0;  ///< in the result; parts outside are ignored
  border at = border::zeros;
  std::uint8_t mirrored = 0;  ///< left to right
  std::uint16_t unused = 0;
  float contrast = 1, brightness = 0;

  constexpr bool jittered() const { return contrast != 1 || brightness != 0; }

  /// The source row of result row i, or the source column of column j; −1 stands for zeros.
  constexpr int row(shape s, int i) const { return inside(i - down, s.height); }
  constexpr int column(shape s, int j) const {
    return inside((mirrored ? s.width - 1 - j : j) - right, s.width);
  }
  constexpr bool hole(int i, int j) const {
    return i >= hole_top && i < hole_top + hole_size && j >= hole_left && j < hole_left + hole_size;
  }

  friend constexpr bool operator==(placement const&, placement const&) = default;

 private:
  constexpr int inside(int i, int n) const {
    if (i >= 0 && i < n) return i;
    return at == border::reflect ? reflected(i, n) : -1;
  }
};
static_assert(sizeof(placement) == 32 && std::is_trivially_copyable_v<placement>);

/// Writes `from` to `to`, the memory of another picture, as the placement says.
void place(shape s, view<float> from, placement const& how, std::span<float> to);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/placement.ipp"
#endif
