// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this metric of the model's .metrics. cannot be computed from the labels of its .loss.
// facts: metric_takes<edl::auc, edl::nn::own_label<float> >
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/job/author/model_traits.hpp"

struct net {
  static constexpr auto network =
      edl::nn::sequential(edl::nn::features{.count = 4}, edl::nn::dense{.units = 4});
  static constexpr auto loss = edl::nn::heads(edl::nn::head<"a", 1>(edl::nn::sigmoid_cross_entropy{}),
                                              edl::nn::head<"b", 3>(edl::nn::softmax_cross_entropy{}));
  using metrics = edl::metrics<edl::of_head<loss, "a", edl::auc>, edl::mean_loss, edl::auc>;
  static void feed(edl::example const&, edl::sample<net>&, edl::mode) {}
};

int main() { edl::check_model<net>(); }
