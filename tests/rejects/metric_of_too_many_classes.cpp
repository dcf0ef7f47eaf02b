// SPDX-License-Identifier: Apache-2.0
// rejects: edl: confusion<N> is for 2 to 32 classes
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  using metrics = edl::metrics<edl::confusion<33>>;
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
