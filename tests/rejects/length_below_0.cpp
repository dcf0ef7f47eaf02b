// SPDX-License-Identifier: Apache-2.0
// rejects: edl: an input of the network has no size
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto in =
      nn::inputs(nn::input<"x">(nn::features{.count = 4}), nn::input<"long">(nn::length{.most = -4}));
  static constexpr auto network = nn::sequential(in, in.from<"x">(), nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.input<"x">() = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
