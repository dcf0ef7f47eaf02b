// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the heads of the model's .loss. have other outputs than its .network.
#include "edl/author/model_learner.hpp"
#include "edl/nn/layers.hpp"
#include "edl/nn/losses.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 4});
  static constexpr auto loss = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                         nn::head<"stars", 5>(nn::softmax_cross_entropy{}));
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { sizeof(edl::author::model_learner<net>); }
