// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace edl {

/// How a GPU computes products and keeps what lies between layers. Variables, gradients and the optimiser's
/// slots are float32 in all of them, and so is every sum.
enum class precision {
  float32,  ///< 24 bits everywhere
  tf32,     ///< factors of products rounded to 11 bits
  bfloat16  ///< activations, and weights where they are factors, rounded to 8 bits
};

/// Their names as flags say them, in order.
constexpr std::array<std::string_view, 3> names(precision) { return {"float32", "tf32", "bfloat16"}; }

struct cuda_options {
  int index = 0;  ///< of the GPU, counted round and round those that this process sees
  /// From this one on, the first that no other process of this machine has taken so; where there is none, it
  /// is shared.
  bool alone = false;
  edl::precision precision = precision::float32;
  bool measured =
      true;  ///< kernels of libraries by measurement; otherwise by their rule, the same in every run
};

}  // namespace edl
