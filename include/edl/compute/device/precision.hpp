// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace edl {

/// How exactly a device computes products, and how samples lie between layers. Variables, their gradients and
/// the optimiser's slots are float32 in all of them, and so is every sum.
enum class precision {
  float32,   ///< 24 bits everywhere
  tf32,      ///< factors of products rounded to 11 bits; of GPUs alone
  bfloat16,  ///< factors of products rounded to 8 bits, and samples where layers take them so; on a GPU all
  int8       ///< factors quantised to whole numbers of 8 bits; of processors, where nothing is trained
};

/// Their names as flags say them, in order.
constexpr std::array<std::string_view, 4> names(precision) { return {"float32", "tf32", "bfloat16", "int8"}; }

}  // namespace edl
