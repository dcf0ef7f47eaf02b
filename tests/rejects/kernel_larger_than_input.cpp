// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: its `kernel` is larger than its input
// facts: layer_receives<1, edl::nn::conv2d, edl::shape.4, 4, 2., .*fit::kernel_exceeds_input>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::image{.height = 4, .width = 4, .channels = 2}, nn::relu{},
                                           nn::conv2d{.filters = 4, .kernel = 5});
int main() { edl::model<net, edl::cpu> m; }
