// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <tuple>

#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"

namespace edl {

/// Changes a picture (height, width, channels) in place, as the stream says: the same stream, the same
/// change.
template <class A>
concept augmentation = std::copy_constructible<A> &&
    requires(A const a, shape s, std::span<float> picture, random_stream const& random) {
  a(s, picture, random);
};

/// Moves the picture by up to `padding` places up or down and left or right; zeros come in. The same as to
/// cut the picture's size out of a picture with that many zeros around it.
struct random_crop {
  int padding = 4;

  void operator()(shape s, std::span<float> picture, random_stream const& random) const;
};

/// Turns every other picture, by chance, left to right.
struct random_flip {
  void operator()(shape s, std::span<float> picture, random_stream const& random) const;
};

/// Makes a square of zeros whose centre is anywhere in the picture; what lies outside is cut off (DeVries and
/// Taylor, "Improved regularization of convolutional neural networks with cutout", 2017).
struct cutout {
  int size = 8;

  void operator()(shape s, std::span<float> picture, random_stream const& random) const;
};

/// Augmentations one after the other, each with its own random numbers.
template <augmentation... A>
struct augmentations {
  std::tuple<A...> all;

  void operator()(shape s, std::span<float> picture, random_stream const& random) const {
    std::uint64_t index = 0;
    std::apply([&](auto const&... a) { (a(s, picture, random.child(index++)), ...); }, all);
  }
};

/// E.g. `augment(random_crop{.padding = 4}, random_flip{}, cutout{.size = 8})`.
template <augmentation... A>
constexpr augmentations<A...> augment(A... a) {
  return {{a...}};
}

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/data/augment.ipp"
#endif
