// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace edl {

/// The order of a tensor's numbers in other programs' files.
enum class weight_order {
  same,  ///< as in the variable
  /// As PyTorch stores kernels: (units, inputs), (filters, channels, length), (filters, channels, height,
  /// width). A variable has (inputs, units), (length, channels, filters), (height, width, channels, filters).
  /// One-dimensional variables are the same in both.
  pytorch,
};

/// A variable's name in other programs' files. A tensor with the variable's own name takes precedence.
///
/// For layers that repeat, `#` stands for the number n of one, from 0 on: "h.#.ln_1.weight" is the name of
/// "repeat/block_#/gamma". In `ours` it is preceded by "_", and "_#" is what edl appends to a name that
/// occurs again: nothing for 0, else "_n".
///
/// Several tensors may make one variable: "attn.{q,k,v}_proj.weight" stands for three, whose first extents
/// follow each other. With braces in `ours` an entry stands for several: "layer{1,2}.conv.weight" and
/// "layer{1,2}/conv2d/kernel" for two. Each pair of braces in `ours` goes with the first one that is left in
/// `theirs`, and has as many choices.
struct weight_name {
  std::string_view theirs;  ///< "features.0.weight"
  std::string_view ours;    ///< "conv2d/kernel"
  weight_order order = weight_order::same;
};

}  // namespace edl
