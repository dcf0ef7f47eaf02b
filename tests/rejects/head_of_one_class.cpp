// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the loss of this head cannot be computed from so many outputs
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr auto loss =
      nn::heads(nn::head<"a", 1>(nn::mean_squared_error{}), nn::head<"b", 1>(nn::softmax_cross_entropy{}));
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.head<"a">() = record.floating("a");
    into.head<"b">() = float(record.integer("b"));
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
