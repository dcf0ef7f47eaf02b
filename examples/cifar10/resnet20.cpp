// SPDX-License-Identifier: Apache-2.0
// ResNet-20 for CIFAR-10: 120 epochs of minibatches of 128.
#include "resnet.hpp"

struct resnet20 {
  static constexpr auto network = resnet::of_20_layers;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.momentum = 0.9f, .nesterov = true, .weight_decay = 5e-3f};
  static constexpr edl::warmup<edl::polynomial_decay> schedule{.steps = 1950,
                                                               .then = {.rate = 0.1f, .steps = 46800}};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<resnet20>& into, edl::mode m) {
    resnet::feed(record, into, m);
  }
};

int main(int argc, char** argv) { return edl::run<resnet20>(argc, argv); }
