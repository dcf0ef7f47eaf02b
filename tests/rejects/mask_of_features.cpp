// SPDX-License-Identifier: Apache-2.0
// rejects: edl: a mask is made of an input of `nn::ids`, or of an `nn::length`
// facts: names_places
#include "edl/compute/nn/layers.hpp"
namespace nn = edl::nn;
inline constexpr auto in = nn::inputs(nn::input<"x">(nn::features{.count = 3}));
inline constexpr auto mask = in.mask<"x">();
int main() { return mask.id; }
