// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this input has no name
#include "edl/compute/nn/layers.hpp"
namespace nn = edl::nn;
constexpr auto in = nn::inputs(nn::input<>(nn::features{.count = 1}));
int main() {}
