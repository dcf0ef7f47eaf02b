// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: its `window` is larger
// facts: layer_receives<2, edl::nn::max_pool, edl::shape.2, 2, 4., .*fit::window_exceeds_input>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net =
    nn::sequential(nn::image{.height = 4, .width = 4}, nn::conv2d{.filters = 4, .kernel = 3}, nn::relu{},
                   nn::max_pool{.window = 3});
int main() { return int(edl::model<net, edl::cpu>::parameter_count); }
