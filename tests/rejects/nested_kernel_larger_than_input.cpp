// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: its `kernel` is larger than its input
// facts: layer_receives<2, edl::nn::conv2d, .*fit::kernel_exceeds_input, edl::nn::inside<1, 0> ?>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(
    nn::image{.height = 4, .width = 4, .channels = 2}, nn::relu{},
    nn::residual(nn::sequential(nn::batch_norm{}, nn::relu{}, nn::conv2d{.filters = 2, .kernel = 7})));
int main() { edl::model<net, edl::cpu> m; }
