// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the loss of this head compares samples with each other
#include "edl/compute/nn/losses.hpp"

namespace nn = edl::nn;

constexpr auto loss =
    nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}), nn::head<"face", 8>(nn::triplet{}));

int main() { return int(loss.all_outputs); }
