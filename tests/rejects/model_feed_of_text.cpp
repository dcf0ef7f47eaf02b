// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s .feed. should be
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(std::string const&, edl::sample<net>& into, edl::mode) { into.label = 1; }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
