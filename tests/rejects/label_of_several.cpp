// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s `loss` takes several labels of a sample, and this is one
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.floating("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
