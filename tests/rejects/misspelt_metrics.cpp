// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s metrics are read by the name `metrics`
#include "edl/edl.hpp"
namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  using metric = edl::metrics<edl::accuracy>;
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
