// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <edl/edl.hpp>

/// The fastest way to 94 % on CIFAR-10: seven epochs of minibatches of 1,536. (Jordan, "94% on CIFAR-10
/// in 3.29 seconds on a single GPU", 2024, by Muon, as Hiverge's search of 2025 has tuned it.)
namespace fast {

namespace nn = edl::nn;

constexpr int batch = 1536;
constexpr int steps = 245;  // 35 in an epoch: each of the five files ends with a minibatch that is not full

// The recipe's rates are for the sum of a minibatch's losses, not for their mean. Muon's steps do not depend
// on that. All rates and decays become those of the filters: the others' are the squares of gains, which the
// network has. A step of SGD is `of_biases` times one with the filters' rate where a number counts
// `bias_gain` times.
constexpr float of_filters = 0.205f, of_biases = 0.0573f * batch / of_filters,
                of_head = 0.5415f * batch / of_filters;
constexpr float bias_gain = 20.72f, head_gain = 63.70f;
static_assert(bias_gain * bias_gain > 0.999f * of_biases && bias_gain * bias_gain < 1.001f * of_biases);
static_assert(head_gain * head_gain > 0.999f * of_head && head_gain * head_gain < 1.001f * of_head);

constexpr nn::conv2d convolution(int filters) {
  return {.filters = filters,
          .kernel = 3,
          .padding = nn::padding::same,
          .use_bias = false,
          .kernel_initializer = nn::pass_through{}};
}
constexpr nn::batch_norm norm{
    .momentum = 0.5566f, .epsilon = 1e-12f, .scale = false, .shift_gain = bias_gain};
constexpr auto group(int filters) {
  return nn::sequential(convolution(filters), nn::max_pool{.window = 2}, norm, nn::silu{},
                        convolution(filters), norm, nn::silu{});
}

struct cifar10 {
  static constexpr double head = 1.732 / head_gain;  // of variance 1 with the gain
  static constexpr auto network = nn::sequential(
      nn::image{.height = 32, .width = 32, .channels = 3},
      nn::conv2d{.filters = 24, .kernel = 2, .train_kernel = false}, nn::gelu{}, group(64), group(256),
      group(256), nn::max_pool{.window = 3},
      nn::dense{.units = 10, .use_bias = false, .kernel_initializer = nn::uniform{-head, head}},
      nn::scale{.factor = head_gain / 256});
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = 0.09f};
  static constexpr edl::muon optimizer{.momentum = 0.655f,
                                       .newton_schulz_steps = 3,
                                       .polynomial = {3.4576, -4.7391, 2.0843},
                                       .match_adamw = false,
                                       .reset_norms = {.every = 2, .growth = 15, .steps = steps},
                                       .adamw_for = "dense/kernel",
                                       .sgd_for_rest = true,
                                       .beta_1 = 0.825f,
                                       // The recipe's decay goes through the momentum, and not with the rate.
                                       .weight_decay = 1.0418e-6f * batch / (1 - 0.825f) / of_filters,
                                       .exclude_from_weight_decay = "*conv2d*"};
  static constexpr edl::polynomial_decay schedule{.rate = of_filters, .steps = steps};
  // The whitening layer's bias has the first steps alone, in which the recipe's rate for it falls to 0.
  static constexpr edl::rates rates{{"conv2d/bias", of_biases * 4 / 7, 7}};
  static constexpr auto augmentation = edl::augment(
      edl::random_crop{.padding = 2, .border = edl::border::reflect}, edl::random_flip{.alternating = true},
      edl::random_jitter{.brightness = 0.1399f, .contrast = 0.1308f});
  static constexpr auto evaluation =
      edl::test_time_augmentation(edl::test_time_view{}, edl::test_time_view{.mirrored = true},
                                  edl::test_time_view{.down = -1, .right = -1},
                                  edl::test_time_view{.down = -1, .right = -1, .mirrored = true},
                                  edl::test_time_view{.down = 1, .right = 1},
                                  edl::test_time_view{.down = 1, .right = 1, .mirrored = true})
          .of_least_confident(0.25f);
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<cifar10>& into, edl::mode m) {
    static xt::xtensor_fixed<float, xt::xshape<3>> const mean{0.4914f, 0.4822f, 0.4465f},
        deviation{0.2470f, 0.2435f, 0.2616f};
    into.features = (record.floats("image", {32, 32, 3}) / 255.0f - mean) / deviation;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }

  static void prepare(edl::first_samples const& data, edl::initial_variables& into) {
    std::size_t const pictures = data.count < 960 ? data.count : 960;
    nn::whiten(data.features.first(pictures * data.of_one.size()), data.of_one, 2, 5e-4,
               into["conv2d/kernel"]);
  }
};

}  // namespace fast
