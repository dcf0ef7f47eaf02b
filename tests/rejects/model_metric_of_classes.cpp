// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this metric of the model's .metrics. cannot be computed from the labels of its .loss.
// facts: metric_takes<edl::macro_f1<3>, float>
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/job/author/model_traits.hpp"

struct net {
  static constexpr auto network =
      edl::nn::sequential(edl::nn::features{.count = 4}, edl::nn::dense{.units = 3});
  static constexpr edl::nn::huber loss{};
  using metrics = edl::metrics<edl::mae, edl::r2, edl::macro_f1<3>>;
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
