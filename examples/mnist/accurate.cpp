// SPDX-License-Identifier: Apache-2.0
// A deeper network with a recipe for five epochs: 99.6 %.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct accurate {
  static constexpr nn::batch_norm norm{.momentum = 0.9f};
  static constexpr auto network = nn::sequential(
      nn::image{.height = 28, .width = 28, .channels = 1}, nn::conv2d{.filters = 32, .kernel = 3}, norm,
      nn::relu{}, nn::conv2d{.filters = 32, .kernel = 3}, norm, nn::relu{}, nn::max_pool{.window = 2},
      nn::conv2d{.filters = 64, .kernel = 3}, norm, nn::relu{}, nn::conv2d{.filters = 64, .kernel = 3}, norm,
      nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.25f}, nn::dense{.units = 128}, nn::relu{},
      nn::dropout{.rate = 0.25f}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = 0.1f};
  static constexpr edl::adam optimizer{.weight_decay = 0.1f};
  static constexpr edl::warmup<edl::polynomial_decay> schedule{
      .steps = 300, .then = {.rate = 0.003f, .steps = 4690}};  // 5 epochs of minibatches of 64
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 1});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<accurate>& into, edl::mode m) {
    into.features = record.floats("image", {28, 28, 1}) / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<accurate>(argc, argv); }
