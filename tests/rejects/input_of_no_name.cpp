// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the network has no input of this name
#include "edl/compute/nn/layers.hpp"
namespace nn = edl::nn;
constexpr auto in = nn::inputs(nn::input<"age">(nn::features{.count = 1}));
constexpr auto branch = in.from<"ages">(nn::dense{.units = 1});
int main() {}
