// SPDX-License-Identifier: Apache-2.0
// rejects: metric_takes<edl::accuracy, edl::nn::own_label<int> >
#include "edl/author/model_traits.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"

struct net {
  static constexpr int network = 0;
  static constexpr edl::nn::triplet loss{};
  using metrics = edl::metrics<edl::mean_loss, edl::accuracy>;
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
