// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this metric has no `static double value
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  static constexpr std::string_view name = "own";
  static constexpr std::size_t totals = 1;
  static void update(std::span<double>, edl::shape, int, edl::view<float>, edl::view<float>, double) {}
};

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr auto loss =
      nn::heads(nn::head<"a", 1>(nn::mean_squared_error{}), nn::head<"b", 1>(nn::mean_squared_error{}));
  using metrics = edl::metrics<edl::of_head<loss, "a", own>>;
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode) {
    into.features = record.floats("x");
    into.head<"a">() = float(record.integer("click"));
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
