// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this metric of the model's .metrics. is for another number of classes than its .network. has
// facts: metric_of_classes<edl::confusion<4>, 3
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/job/author/model_traits.hpp"

namespace nn = edl::nn;

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  using metrics = edl::metrics<edl::confusion<4>>;
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
