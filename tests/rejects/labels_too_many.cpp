// SPDX-License-Identifier: Apache-2.0
// rejects: edl: these labels are not as many as the model.s `loss` takes
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = {0, 1, 0};
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
