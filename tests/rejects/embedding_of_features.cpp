// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: it takes ids
// facts: layer_receives<0, edl::nn::embedding, edl::shape.1, 1, 3., .*fit::takes_only_ids>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net =
    nn::sequential(nn::features{.count = 3}, nn::embedding{.vocabulary = 5, .width = 2});
int main() { edl::model<net, edl::cpu> m; }
