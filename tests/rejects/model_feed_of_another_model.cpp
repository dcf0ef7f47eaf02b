// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s .feed. should be
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  struct other;
  static void feed(edl::example const&, edl::sample<other>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
