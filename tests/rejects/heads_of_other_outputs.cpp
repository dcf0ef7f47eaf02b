// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s `loss` cannot be computed from as many outputs as its `network` has
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 4});
  static constexpr auto loss = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                         nn::head<"stars", 5>(nn::softmax_cross_entropy{}));
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.head<"click">() = float(record.integer("click"));
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
