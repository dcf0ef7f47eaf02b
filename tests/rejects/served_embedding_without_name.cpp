// SPDX-License-Identifier: Apache-2.0
// rejects: edl: a served embedding is a named input
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network =
      nn::sequential(nn::served_embedding{.count = 2, .width = 3}, nn::flatten{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
