// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace edl {

/// How the numbers of a tensor follow each other in others' files.
enum class weight_order {
  same,  ///< as in the variable
  /// As PyTorch has kernels: (units, inputs), (filters, channels, length), (filters, channels, height,
  /// width). A variable has (inputs, units), (length, channels, filters), (height, width, channels, filters).
  /// What has one dimension is the same in both.
  pytorch,
};

/// A variable's name in files that others wrote. What a file has by the variable's own name goes before.
struct weight_name {
  std::string_view theirs;  ///< "features.0.weight"
  std::string_view ours;    ///< "conv2d/kernel"
  weight_order order = weight_order::same;
};

}  // namespace edl
