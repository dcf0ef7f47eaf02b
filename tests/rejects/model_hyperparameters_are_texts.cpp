// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the members of the model's .struct hyperparameters. should be numbers
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  struct hyperparameters {
    char const* rate = "0.1";
  };
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
