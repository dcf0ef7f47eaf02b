// SPDX-License-Identifier: Apache-2.0
// rejects: edl: heads are at least two
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr auto loss = nn::heads(nn::head<"stars", 2>(nn::softmax_cross_entropy{}));
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.head<"stars">() = record.floating("stars");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
