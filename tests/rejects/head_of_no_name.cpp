// SPDX-License-Identifier: Apache-2.0
// rejects: edl: no head has this name
#include "edl/compute/nn/losses.hpp"

namespace nn = edl::nn;

constexpr auto loss = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                nn::head<"stars", 5>(nn::softmax_cross_entropy{}));

int main() { return int(loss.first_of<"star">()[0]); }
