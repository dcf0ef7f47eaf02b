// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model's .evaluation. should be .static constexpr auto evaluation
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr edl::test_time_view evaluation{.mirrored = true};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
