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
  int count = 1;

  constexpr shape input() const { return {1, 1, count}; }
};

}  // namespace edl::nn
