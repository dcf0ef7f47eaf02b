// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 of named stages: a function makes each, and the network is three of them.
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr auto convolution(int filters) {
  return nn::sequential(
      nn::conv2d{.filters = filters, .kernel = 3, .padding = nn::padding::same, .kernel_initializer = nn::he_normal{}},
      nn::batch_norm{.momentum = 0.9f}, nn::relu{});
}

constexpr auto stage(int filters, float dropped) {
  return nn::sequential(convolution(filters), convolution(filters), nn::max_pool{.window = 2},
                        nn::dropout{.rate = dropped});
}

struct cifar10 {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 32, .width = 32, .channels = 3}, stage(32, 0.2f), stage(64, 0.3f),
                     stage(128, 0.4f), nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3f};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<cifar10>& into, edl::mode m) {
    into.features = record.floats("image", {32, 32, 3}) / 127.5f - 1.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<cifar10>(argc, argv); }
