// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this augmentation has no call `void operator
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  int size = 2;
};

struct net {
  static constexpr auto network = nn::sequential(nn::image{.height = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  struct hyperparameters {
    float rate = 0.1f;
  };
  static auto augmentation(hyperparameters const&) { return own{}; }
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
