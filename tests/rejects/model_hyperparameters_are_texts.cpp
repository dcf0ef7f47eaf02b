// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the members of the model's .struct hyperparameters. should be numbers
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/job/author/model_traits.hpp"

struct net {
  struct hyperparameters {
    char const* rate = "0.1";
  };
  static constexpr int network = 0;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
