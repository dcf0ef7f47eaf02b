// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this head has no name and no number of outputs
#include "edl/compute/nn/losses.hpp"
namespace nn = edl::nn;
constexpr auto loss =
    nn::heads(nn::head<>(nn::sigmoid_cross_entropy{}), nn::head<"stars", 5>(nn::softmax_cross_entropy{}));
int main() {}
