// SPDX-License-Identifier: Apache-2.0
// rejects: is_a_layer<1, int>
#include "edl/nn/layers.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 2}, 42);
int main() {}
