// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace edl {

/// How exactly a device computes products, and how it stores samples between layers. Variables, their
/// gradients, the optimiser's slots and every sum are float32 in all of them.
enum class precision {
  float32,   ///< 24 bits everywhere
  tf32,      ///< factors of products rounded to 11 bits; GPUs only
  bfloat16,  ///< factors of products rounded to 8 bits; samples, too, where layers support it (GPU: all)
  int8       ///< factors quantised to whole numbers of 8 bits; processors only, without training
};

/// The names of the precisions in flags, in order.
constexpr std::array<std::string_view, 4> names(precision) { return {"float32", "tf32", "bfloat16", "int8"}; }

}  // namespace edl
