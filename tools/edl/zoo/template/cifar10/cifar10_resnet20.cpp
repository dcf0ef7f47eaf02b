// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 with a residual network of 20 layers (He, Zhang, Ren and Sun, "Deep residual learning for image
// recognition", 2016).
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr nn::conv2d convolution(int filters, int stride = 1, int kernel = 3) {
  return {.filters = filters,
          .kernel = kernel,
          .stride = stride,
          .padding = nn::padding::same,
          .use_bias = false,
          .kernel_initializer = nn::he_normal{}};
}
constexpr nn::batch_norm norm{.momentum = 0.9f, .epsilon = 1e-5f};

constexpr auto body(int filters, int stride) {
  return nn::sequential(convolution(filters, stride), norm, nn::relu{}, convolution(filters), norm);
}
constexpr auto block(int filters) { return nn::sequential(nn::residual(body(filters, 1)), nn::relu{}); }
/// The first block of a stage: height and width become half.
constexpr auto halving(int filters) {
  return nn::sequential(nn::residual(body(filters, 2), nn::sequential(convolution(filters, 2, 1), norm)), nn::relu{});
}

struct cifar10 {
  static constexpr auto network = nn::sequential(
      nn::image{.height = 32, .width = 32, .channels = 3}, convolution(16), norm, nn::relu{},
      block(16), block(16), block(16),
      halving(32), block(32), block(32),
      halving(64), block(64), block(64),
      nn::global_average_pool{}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 200, .then = {.rate = 0.1f, .steps = 23400}};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<cifar10>& into, edl::mode m) {
    into.features = record.floats("image", {32, 32, 3}) / 127.5f - 1.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<cifar10>(argc, argv); }
