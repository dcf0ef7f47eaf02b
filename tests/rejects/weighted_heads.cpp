// SPDX-License-Identifier: Apache-2.0
// rejects: edl: `nn::sample_weighted` is for losses of samples one by one
// Lines: 21
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::sample_weighted loss{nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                                      nn::head<"buy", 1>(nn::sigmoid_cross_entropy{}))};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.head<"click">() = float(record.integer("y"));
    into.weight = record.floating("weight");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
