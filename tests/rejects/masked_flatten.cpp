// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: within `nn::masked` it would see padding
// facts: layer_receives<1, edl::nn::flatten, edl::shape.1, 3, 2., .*fit::sees_padding, edl::nn::inside<0> >
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
inline constexpr auto net =
    nn::sequential(nn::ids{.count = 3}, nn::masked(nn::embedding{.vocabulary = 9, .width = 2}, nn::flatten{}),
                   nn::dense{.units = 2});
int main() { edl::model<net, edl::cpu> m; }
