// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model's .weight_names. should be
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/job/author/model_traits.hpp"

struct net {
  static constexpr auto network =
      edl::nn::sequential(edl::nn::features{.count = 4}, edl::nn::dense{.units = 3});
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
  static constexpr char const* weight_names[] = {"fc.weight", "dense/kernel"};
};

int main() { edl::check_model<net>(); }
