// SPDX-License-Identifier: Apache-2.0
// rejects: edl: inputs of the network share a table of rows
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto in = nn::inputs(nn::input<"a">(nn::served_embedding{.count = 1, .width = 3}),
                                        nn::input<"b", "a">(nn::served_embedding{.count = 1, .width = 4}));

  static constexpr auto network = nn::sequential(in, in.from<"a">(nn::flatten{}, nn::dense{.units = 2}));
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
