// SPDX-License-Identifier: Apache-2.0
// rejects: edl: a sample of heads has no weight: `nn::sample_weighted` is for one loss of all outputs
#include "edl/compute/nn/losses.hpp"

namespace nn = edl::nn;

constexpr auto loss = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                nn::head<"buy", 1>(nn::sample_weighted{nn::sigmoid_cross_entropy{}}));

int main() { return int(loss.all_outputs); }
