// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the network's `nn::ids` has `lengths`, so its first layer should be `nn::masked
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network =
      nn::sequential(nn::ids{.count = 8, .lengths = {4}}, nn::embedding{.vocabulary = 9, .width = 2},
                     nn::lstm{.units = 2, .last = true});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
