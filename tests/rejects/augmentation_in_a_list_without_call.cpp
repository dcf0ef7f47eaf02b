// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this augmentation has no call `void operator
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  int by = 1;
};

struct net {
  static constexpr auto network = nn::sequential(nn::image{.height = 4, .width = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr auto augmentation = edl::augment(edl::random_flip{}, own{});
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = xt::reshape_view(record.floats("x"), {4, 4, 1});
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
