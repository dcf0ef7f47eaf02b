// SPDX-License-Identifier: Apache-2.0
// rejects: edl: `nn::features` is a single step for a recurrent layer
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::lstm{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
