// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "edl/device/placement.hpp"

namespace edl {

/// One way in which a network is shown a picture in evaluation and prediction: moved down and to the right
/// (negative: up, to the left), then mirrored left to right or not.
struct look {
  double weight = 1;  ///< of what the network says then; 0 or more
  int down = 0, right = 0;
  bool mirrored = false;
  border at = border::reflect;

  constexpr placement placed() const {
    return {.down = down, .right = right, .at = at, .mirrored = mirrored};
  }
};

/// The part of the i-th look: all parts add up to 1.
constexpr float part_of(std::span<look const> looks, std::size_t i) {
  double sum = 0;
  for (look const& l : looks) sum += l.weight;
  return float(looks[i].weight / sum);
}

/// `said`: what the network says on the looks, one after the other. The mean takes the first one's place.
inline void join(std::span<look const> looks, std::span<float> said) {
  std::size_t const n = said.size() / looks.size();
  for (std::size_t i = 0; i < looks.size(); ++i) {
    float const weight = part_of(looks, i);
    for (std::size_t k = 0; k < n; ++k) said[k] = weight * said[i * n + k] + (i > 0 ? said[k] : 0);
  }
}

/// What a network says is the mean of what it says on N looks at a picture.
template <std::size_t N>
struct average {
  std::array<look, N> looks;

  constexpr bool valid() const {
    double sum = 0;
    for (look const& l : looks) {
      if (!(l.weight >= 0)) return false;
      sum += l.weight;
    }
    return sum > 0;
  }
};

/// E.g. `average_of(look{}, look{.mirrored = true})`: the mean of a picture and its mirror image.
template <class... Look>
constexpr average<sizeof...(Look)> average_of(Look... l) {
  return {{look(l)...}};
}

}  // namespace edl
