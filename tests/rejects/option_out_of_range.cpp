// SPDX-License-Identifier: Apache-2.0
// rejects: edl: an option of this layer is out of range
// facts: layer_receives<0, edl::nn::dropout, edl::shape.1, 1, 3., .*fit::option_out_of_range>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::features{.count = 3}, nn::dropout{.rate = 1.5f});
int main() { edl::model<net, edl::cpu> m; }
