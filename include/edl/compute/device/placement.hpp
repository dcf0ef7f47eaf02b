// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// What a moved picture shows where nothing comes to lie.
enum class border : std::uint8_t {
  zeros,
  reflect,  ///< the picture mirrored at its edge, which is not repeated: 3 2 1 2 3, as numpy's "reflect"
};

/// The place in [0, n) that `i`, anywhere, shows: there and back again without repeating the ends.
constexpr int reflected(int i, int n) {
  if (n == 1) return 0;
  int const period = 2 * (n - 1), at = (i % period + period) % period;
  return at < n ? at : period - at;
}

/// How a picture (height, width, channels) is shown: moved, then mirrored, then its numbers (those that came
/// in, too) times `contrast` plus `brightness`, then a square of it zeroed. What
/// the augmentations of edl/compute/data/augment.hpp do to one can be said like this. So whatever computes
/// can do it while it takes the picture in. Copied to devices as it is.
struct placement {
  std::int32_t down = 0, right = 0;  ///< places that it is moved by, before it is mirrored
  std::int32_t hole_top = 0, hole_left = 0, hole_size = 0;  ///< as shown, parts outside count for nothing
  border at = border::zeros;
  std::uint8_t mirrored = 0;  ///< left to right
  std::uint16_t unused = 0;
  float contrast = 1, brightness = 0;

  constexpr bool jittered() const { return contrast != 1 || brightness != 0; }

  /// Which row, or which column, of a picture is shown in row i, or column j: −1 for zeros.
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

/// `to`, another picture's memory, shows `from` as the placement says.
void place(shape s, view<float> from, placement const& how, std::span<float> to);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/placement.ipp"
#endif
