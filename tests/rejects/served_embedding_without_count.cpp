// SPDX-License-Identifier: Apache-2.0
// rejects: edl: a served embedding of the network lacks `count` .`most` of a bag. or `width`
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto in = nn::inputs(nn::input<"a">(nn::served_embedding{.width = 3}));

  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"a">(nn::flatten{})), nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
