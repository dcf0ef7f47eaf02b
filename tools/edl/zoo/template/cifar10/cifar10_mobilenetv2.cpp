// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 (Sandler, Howard, Zhu, Zhmoginov and Chen, "Inverted residuals and linear bottlenecks", 2018) for
// pictures of 32 × 32: the first convolution and the second stage keep height and width.
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr nn::batch_norm norm{.momentum = 0.9f, .epsilon = 1e-5f};

constexpr nn::conv2d pointwise(int filters) {
  return {.filters = filters, .use_bias = false, .kernel_initializer = nn::he_normal{}};
}
/// A filter for each channel.
constexpr nn::conv2d depthwise(int channels, int stride) {
  return {.filters = channels,
          .kernel = 3,
          .stride = stride,
          .padding = nn::padding::same,
          .groups = channels,
          .use_bias = false,
          .kernel_initializer = nn::he_normal{}};
}

/// Wide within, narrow outside: `factor` times as many channels between the two.
constexpr auto bottleneck(int channels, int factor, int filters, int stride) {
  return nn::sequential(pointwise(channels * factor), norm, nn::relu{}, depthwise(channels * factor, stride), norm,
                        nn::relu{}, pointwise(filters), norm);
}
constexpr auto inverted(int channels) { return nn::residual(bottleneck(channels, 6, channels, 1)); }

struct cifar10 {
  static constexpr auto network = nn::sequential(
      nn::image{.height = 32, .width = 32, .channels = 3},
      nn::conv2d{.filters = 32, .kernel = 3, .padding = nn::padding::same, .use_bias = false}, norm, nn::relu{},
      bottleneck(32, 1, 16, 1),
      bottleneck(16, 6, 24, 1), inverted(24),
      bottleneck(24, 6, 32, 2), inverted(32), inverted(32),
      bottleneck(32, 6, 64, 2), inverted(64), inverted(64), inverted(64),
      bottleneck(64, 6, 96, 1), inverted(96), inverted(96),
      bottleneck(96, 6, 160, 2), inverted(160), inverted(160),
      bottleneck(160, 6, 320, 1),
      pointwise(1280), norm, nn::relu{}, nn::global_average_pool{}, nn::dropout{.rate = 0.2f},
      nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 2e-3f};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<cifar10>& into, edl::mode m) {
    into.features = record.floats("image", {32, 32, 3}) / 127.5f - 1.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<cifar10>(argc, argv); }
