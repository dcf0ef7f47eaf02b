// SPDX-License-Identifier: Apache-2.0
// rejects: edl: an option of the model's .loss. is out of range, or its .class_weights. are not as many
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/job/author/model_traits.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{.class_weights = {1, 2}};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
