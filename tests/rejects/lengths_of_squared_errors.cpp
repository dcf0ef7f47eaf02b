// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the network's `nn::ids` has `lengths`, and an output for each place
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network =
      nn::sequential(nn::ids{.count = 8, .lengths = {4}},
                     nn::masked(nn::embedding{.vocabulary = 9, .width = 2}, nn::attention{}));
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
