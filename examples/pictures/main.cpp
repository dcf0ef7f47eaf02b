// SPDX-License-Identifier: Apache-2.0
// A small convolutional network for a folder of pictures: DIR/class/name.png, of any sizes.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct pictures {
  static constexpr edl::shape size{.height = 32, .width = 32, .channels = 3};  // that all of them are made
  static constexpr int classes = 10;                                           // folders, or more

  static constexpr auto network = nn::sequential(
      nn::image{.height = size.height, .width = size.width, .channels = size.channels},
      nn::conv2d{.filters = 16, .kernel = 3, .padding = nn::padding::same}, nn::batch_norm{.momentum = 0.9f},
      nn::relu{}, nn::max_pool{.window = 2},
      nn::conv2d{.filters = 32, .kernel = 3, .padding = nn::padding::same}, nn::batch_norm{.momentum = 0.9f},
      nn::relu{}, nn::max_pool{.window = 2},
      nn::conv2d{.filters = 64, .kernel = 3, .padding = nn::padding::same}, nn::batch_norm{.momentum = 0.9f},
      nn::relu{}, nn::global_average_pool{}, nn::dense{.units = classes});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 0.003f};
  static constexpr auto augmentation = edl::augment(edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<pictures>& into, edl::mode m) {
    into.features = edl::resized(edl::picture_of(record), size) / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<pictures>(argc, argv); }
