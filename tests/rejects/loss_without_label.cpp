// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this loss has no `label`
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(edl::shape output) { return output.size(); }
  static bool valid(float, edl::shape) { return true; }
  double operator()(edl::shape, int, edl::view<float>, edl::view<float>, std::span<float>) const { return 0; }
};

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr own loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.floats("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
