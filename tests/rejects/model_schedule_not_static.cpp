// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model's .schedule. should be .static float schedule
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  float schedule(std::uint64_t) const { return 0.1f; }
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
