// SPDX-License-Identifier: Apache-2.0
// ResNet-18 for CIFAR-10: 30 epochs of minibatches of 128.
#include "resnet.hpp"

struct resnet18 {
  static constexpr auto network = resnet::of_18_layers;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.momentum = 0.9f, .nesterov = true, .weight_decay = 5e-3f};
  static constexpr edl::warmup<edl::polynomial_decay> schedule{.steps = 1950,
                                                               .then = {.rate = 0.05f, .steps = 11700}};
  static constexpr auto augmentation =
      edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{}, edl::cutout{.size = 8});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<resnet18>& into, edl::mode m) {
    resnet::feed(record, into, m);
  }
};

int main(int argc, char** argv) { return edl::run<resnet18>(argc, argv); }
