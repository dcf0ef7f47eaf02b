// SPDX-License-Identifier: Apache-2.0
// rejects: edl: no layer of the model's .network. reads one of its inputs
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto in = nn::inputs(nn::input<"age">(nn::features{}), nn::input<"job">(nn::ids{}));
  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"age">(nn::dense{.units = 4})), nn::dense{.units = 1});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.input<"age">() = record.floats("age");
    if (m != edl::mode::prediction) into.label = record.floating("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
