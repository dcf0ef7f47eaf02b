// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: its `groups` must divide
// facts: layer_receives<0, edl::nn::conv2d, edl::shape.8, 8, 3., .*fit::groups_do_not_divide_channels>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::image{.height = 8, .width = 8, .channels = 3},
                                           nn::conv2d{.filters = 4, .kernel = 3, .groups = 2});
int main() { edl::model<net, edl::cpu> m; }
