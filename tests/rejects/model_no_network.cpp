// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model needs .static constexpr auto network = edl::nn::sequential
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
