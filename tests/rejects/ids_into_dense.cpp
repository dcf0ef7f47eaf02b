// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: ids are for an `nn::embedding`
// facts: layer_receives<0, edl::nn::dense, edl::shape.1, 1, 3., .*fit::takes_no_ids>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::ids{.count = 3}, nn::dense{.units = 2});
int main() { edl::model<net, edl::cpu> m; }
