// SPDX-License-Identifier: Apache-2.0
// rejects: edl: an option of this layer is out of range
// facts: layer_receives<0, edl::nn::conv2d, .*fit::option_out_of_range>
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 7}, nn::conv2d{.filters = 2, .stride = 0}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
