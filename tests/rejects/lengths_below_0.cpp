// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the `lengths` of the network's `nn::ids` are from 1
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(
      nn::ids{.count = 8, .lengths = {-4}},
      nn::masked(nn::embedding{.vocabulary = 9, .width = 2}, nn::global_max_pool{}), nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
