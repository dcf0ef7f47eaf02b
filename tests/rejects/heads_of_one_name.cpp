// SPDX-License-Identifier: Apache-2.0
// rejects: edl: two heads of the model.s `loss` have the same name
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 3});
  static constexpr auto loss = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                                         nn::head<"click", 2>(nn::softmax_cross_entropy{}));
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m == edl::mode::prediction) return;
    into.head<"click">() = record.floating("click");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
