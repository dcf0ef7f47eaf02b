// SPDX-License-Identifier: Apache-2.0
// CIFAR-10: six convolutions in three stages, as in ElasticDL's zoo. `synthetic:pictures` are drawn records.
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr nn::conv2d convolution(int filters) {
  return {.filters = filters, .kernel = 3, .padding = nn::padding::same, .kernel_initializer = nn::he_normal{}};
}
constexpr nn::batch_norm norm{.momentum = 0.9f, .epsilon = 1e-6f};

struct cifar10 {
  static constexpr auto network = nn::sequential(
      nn::image{.height = 32, .width = 32, .channels = 3},
      convolution(32), norm, nn::relu{}, convolution(32), norm, nn::relu{}, nn::max_pool{.window = 2},
      nn::dropout{.rate = 0.2f},
      convolution(64), norm, nn::relu{}, convolution(64), norm, nn::relu{}, nn::max_pool{.window = 2},
      nn::dropout{.rate = 0.3f},
      convolution(128), norm, nn::relu{}, convolution(128), norm, nn::relu{}, nn::max_pool{.window = 2},
      nn::dropout{.rate = 0.4f}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.momentum = 0.9f, .nesterov = true, .weight_decay = 5e-3f};
  static constexpr edl::warmup<edl::polynomial_decay> schedule{
      .steps = 1000, .then = {.rate = 0.1f, .steps = 23400}};  // 60 epochs of minibatches of 128
  static constexpr auto augmentation =
      edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{}, edl::cutout{.size = 8});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<cifar10>& into, edl::mode m) {
    into.features = record.floats("image", {32, 32, 3}) / 127.5f - 1.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<cifar10>(argc, argv); }
