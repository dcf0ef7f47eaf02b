// SPDX-License-Identifier: Apache-2.0
// rejects: edl: two inputs of the network have the same name
#include "edl/compute/nn/layers.hpp"
namespace nn = edl::nn;
constexpr auto in = nn::inputs(nn::input<"age">(nn::features{}), nn::input<"age">(nn::ids{}));
int main() {}
