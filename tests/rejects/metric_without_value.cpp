// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this metric has no `static double value
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  static constexpr std::string_view name = "own";
  static constexpr std::size_t totals = 1;
  static void update(std::span<double>, edl::shape, int, edl::view<float>, edl::view<std::int32_t>, double) {}
};

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  using metrics = edl::metrics<edl::accuracy, own>;
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
