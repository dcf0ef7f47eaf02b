// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer cannot follow the one before it: ids with weights are for
// facts: layer_receives<1, edl::nn::embedding, edl::shape.1, 2, 4., .*fit::takes_no_weights, .*inside<0> ?>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
constexpr auto in = nn::inputs(nn::input<"tags">(nn::weighted_ids{.most = 4}));
inline constexpr auto net = nn::sequential(in, in.from<"tags">(nn::embedding{.vocabulary = 5, .width = 2}));
int main() { edl::model<net, edl::cpu> m; }
