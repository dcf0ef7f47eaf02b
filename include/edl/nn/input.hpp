// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/shape.hpp"

namespace edl::nn {

/// What a network starts with: a picture, channels last.
struct image {
  int height = 1, width = 1, channels = 1;

  constexpr shape input() const { return {height, width, channels}; }
};

/// What a network starts with: a row of numbers.
struct features {
  int count = 1;

  constexpr shape input() const { return {1, 1, count}; }
};

/// What a network starts with: a row of whole numbers, each below a vocabulary, for `embedding` alone. They
/// are float32 on every device, whatever the precision of activations: bfloat16 has 256 of them.
struct ids {
  static constexpr bool of_ids = true;

  int count = 1;

  constexpr shape input() const { return {1, 1, count}; }
};

/// What a network starts with: up to `most` whole numbers with a weight each, for `embedding_bag` alone.
struct weighted_ids {
  static constexpr bool of_ids = true;

  int most = 1;

  /// Ids, of which those behind the last are −1; then weights.
  constexpr shape input() const { return {1, 2, most}; }
};

/// Whether an input of this kind holds ids.
template <class Kind>
constexpr bool holds_ids = requires { requires Kind::of_ids; };

}  // namespace edl::nn
