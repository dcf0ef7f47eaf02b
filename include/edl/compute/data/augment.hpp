// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <tuple>

#include "edl/compute/device/placement.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/unpack.hpp"

namespace edl {

/// The random numbers of a record: different ones in each epoch, as a plain stream, and its `own`, which are
/// the same in all epochs.
struct record_stream : random_stream {
  random_stream own;
  std::uint32_t epoch = 0;

  constexpr record_stream(random_stream const& now) : random_stream(now), own(now) {}
  constexpr record_stream(random_stream const& now, random_stream const& always, std::uint32_t e)
      : random_stream(now), own(always), epoch(e) {}

  constexpr record_stream child(std::uint64_t index) const {
    return {random_stream::child(index), own.child(index), epoch};
  }
};

/// Changes a picture (height, width, channels) in place, depending only on the stream. It may take a
/// `random_stream`. An optional `options_fit()` returns whether its options are in their ranges.
template <class A>
concept augmentation =
    std::copy_constructible<A> && requires(A const a, shape s, std::span<float> picture,
                                           record_stream const& random) { a(s, picture, random); };

/// Instantiated for each augmentation of a model, so that the compiler's message names it and its missing
/// parts.
template <class A>
struct is_an_augmentation {
  static constexpr bool copies = std::copy_constructible<A>;
  static constexpr bool has_call = requires(A const a, shape s, std::span<float> picture,
                                            record_stream const& random) { a(s, picture, random); };
  static_assert(copies, "edl: this augmentation cannot be copied");
  static_assert(has_call,
                "edl: this augmentation has no call `void operator()(edl::shape, std::span<float> picture, "
                "edl::record_stream const& random) const`");
};

/// An augmentation that can describe its change as part of a placement instead of making it. `placing`, for a
/// link of a chain, is that part's turn: 0 moved, 1 mirrored, 2 jittered, 3 a square zeroed.
template <class A>
concept placing_augmentation = augmentation<A> && requires(A const a, shape s, record_stream const& random,
                                                           placement& of) { a.place(s, random, of); };

/// Moves the picture by up to `padding` pixels vertically and horizontally. The same as padding it on all
/// sides and cropping it to its size.
struct random_crop {
  int padding = 4;
  edl::border border = edl::border::zeros;

  constexpr bool options_fit() const { return padding >= 0; }
  void operator()(shape s, std::span<float> picture, record_stream const& random) const;

  static constexpr int placing = 0;
  void place(shape s, record_stream const& random, placement& of) const;
};

/// Mirrors a picture left to right with probability 1/2. `alternating`: mirrors each picture in every other
/// epoch, and chance decides only whether in the first one. So two epochs show every picture both ways
/// (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024).
struct random_flip {
  bool alternating = false;

  void operator()(shape s, std::span<float> picture, record_stream const& random) const;

  static constexpr int placing = 1;
  void place(shape s, record_stream const& random, placement& of) const;
};

/// Multiplies a picture's numbers, as `feed` wrote them, by a factor in 1 ± `contrast`, and adds a number in
/// ± `brightness`. Each is uniform, and the same for the whole picture.
struct random_jitter {
  float brightness = 0.1f, contrast = 0.1f;

  constexpr bool options_fit() const { return brightness >= 0 && contrast >= 0 && contrast < 1; }
  void operator()(shape s, std::span<float> picture, record_stream const& random) const;

  static constexpr int placing = 2;
  void place(shape s, record_stream const& random, placement& of) const;
};

/// Zeroes a square whose centre is anywhere in the picture, clipped to the picture (DeVries and Taylor,
/// "Improved regularization of convolutional neural networks with cutout", 2017).
struct cutout {
  int size = 8;

  constexpr bool options_fit() const { return size >= 0; }
  void operator()(shape s, std::span<float> picture, record_stream const& random) const;

  static constexpr int placing = 3;
  void place(shape s, record_stream const& random, placement& of) const;
};

namespace detail {

template <class... A>
constexpr bool in_placing_order() {
  int done = -1;
  bool in_order = true;
  ((in_order = in_order && A::placing > done, done = A::placing), ...);
  return in_order;
}

/// Whether a chain of these is one placement.
template <class... A>
concept placing_links = (requires { A::placing; } && ...) && in_placing_order<A...>();

}  // namespace detail

/// Augmentations one after the other, each with its own random numbers. They form one placement if each can,
/// and they are in a placement's order.
template <augmentation... A>
struct augmentations {
  std::tuple<A...> all;

  constexpr bool options_fit() const {
    return edl::unpack([](auto const&... a) { return (true && ... && edl::options_fit(a)); }, all);
  }
  void operator()(shape s, std::span<float> picture, record_stream const& random) const {
    std::uint64_t index = 0;
    edl::unpack([&](auto const&... a) { (a(s, picture, random.child(index++)), ...); }, all);
  }

  void place(shape s, record_stream const& random, placement& of) const
    requires detail::placing_links<A...>
  {
    std::uint64_t index = 0;
    edl::unpack([&](auto const&... a) { (a.place(s, random.child(index++), of), ...); }, all);
  }
};

/// Whether an augmentation, or one of several, applies only to pictures.
template <class A>
inline constexpr bool changes_pictures = requires { A::placing; };
template <class... A>
inline constexpr bool changes_pictures<augmentations<A...>> = (changes_pictures<A> || ...);

/// E.g. `augment(random_crop{.padding = 4}, random_flip{}, cutout{.size = 8})`.
template <class... A>
constexpr auto augment(A... a) {
  if constexpr ((augmentation<A> && ...)) {
    return augmentations<A...>{{a...}};
  } else {
    static_assert((... & (sizeof(is_an_augmentation<A>) > 0)));
    return augmentations<>{};
  }
}

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/augment.ipp"
#endif
