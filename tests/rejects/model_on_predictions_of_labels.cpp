// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model's .on_predictions. should be
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
  static void on_predictions(edl::view<int>, int) {}
};

int main() { edl::check_model<net>(); }
