// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: the shapes of its branches do not fit
// facts: layer_receives<1, edl::nn::shortcut<.*, edl::shape.8, 8, 3., .*fit::branches_differ_in_shape>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net = nn::sequential(nn::image{.height = 8, .width = 8, .channels = 3}, nn::relu{},
                                           nn::residual(nn::conv2d{.filters = 3, .kernel = 3}));
int main() { edl::model<net, edl::cpu> m; }
