// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model needs .static void feed
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
};

int main() { edl::check_model<net>(); }
