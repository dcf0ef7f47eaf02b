// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the model.s optimizer is read by the name `optimizer`
#include "edl/edl.hpp"
namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimiser{.learning_rate = 0.1f};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
