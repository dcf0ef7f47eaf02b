// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/shape.hpp"

namespace edl::nn {

/// The padding around a sample under a sliding window. `valid`: none. `same`: as much as makes the output as
/// large as the input, divided by the stride. If it is odd, the greater part is at the end (TensorFlow's
/// rule). `half`: half of the window, rounded down, on each side (PyTorch's `padding=kernel // 2`).
enum class padding { valid, same, half };

/// The positions of a window along one axis: their number, and how far the first starts outside.
struct placement {
  int places = 1, before = 0;
};

constexpr placement place(int in, int window, int stride, padding p) {
  if (p == padding::valid) return {(in - window) / stride + 1, 0};
  if (p == padding::half) return {(in + window / 2 * 2 - window) / stride + 1, window / 2};
  int const places = (in + stride - 1) / stride, outside = (places - 1) * stride + window - in;
  return {places, outside > 0 ? outside / 2 : 0};
}

}  // namespace edl::nn
