// SPDX-License-Identifier: Apache-2.0
// rejects: no matching function for call to .sequential.edl::nn::features, int
#include "edl/nn/layers.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::features{.count = 3}, 42);
int main() {}
