// SPDX-License-Identifier: Apache-2.0
// A residual network of 50 layers for pictures of 224 × 224 and 1,000 classes (He, Zhang, Ren and Sun, "Deep
// residual learning for image recognition", 2016). A record has `image`, 224 · 224 · 3 bytes, and `label`. Pictures
// of 32 × 32 are made larger, so that `synthetic:pictures` and CIFAR-10 will do for a look.
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr int side = 224;

constexpr nn::conv2d convolution(int filters, int stride = 1, int kernel = 1) {
  return {.filters = filters,
          .kernel = kernel,
          .stride = stride,
          .padding = nn::padding::same,
          .use_bias = false,
          .kernel_initializer = nn::he_normal{}};
}
constexpr nn::batch_norm norm{.momentum = 0.9f, .epsilon = 1e-5f};

constexpr auto body(int filters, int stride) {
  return nn::sequential(convolution(filters), norm, nn::relu{}, convolution(filters, stride, 3), norm, nn::relu{},
                        convolution(4 * filters), norm);
}
constexpr auto block(int filters) { return nn::sequential(nn::residual(body(filters, 1)), nn::relu{}); }
/// The first block of a stage has another shape than what goes in.
constexpr auto first(int filters, int stride) {
  return nn::sequential(
      nn::residual(body(filters, stride), nn::sequential(convolution(4 * filters, stride), norm)), nn::relu{});
}

struct imagenet {
  static constexpr auto network = nn::sequential(
      nn::image{.height = side, .width = side, .channels = 3}, convolution(64, 2, 7), norm, nn::relu{},
      nn::max_pool{.window = 3, .stride = 2, .padding = nn::padding::same},
      first(64, 1), block(64), block(64),
      first(128, 2), block(128), block(128), block(128),
      first(256, 2), block(256), block(256), block(256), block(256), block(256),
      first(512, 2), block(512), block(512),
      nn::global_average_pool{}, nn::dense{.units = 1000});
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = 0.1f};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true, .weight_decay = 5e-5f};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 2500, .then = {.rate = 0.1f, .steps = 450000}};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 16}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy, edl::top_k<5>>;

  static void feed(edl::example const& record, edl::sample<imagenet>& into, edl::mode m) {
    std::size_t const own = record.count("image") == std::size_t(side) * side * 3 ? side : 32;
    auto const picture = record.floats("image", {own, own, 3});
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          into.features(y, x, c) = picture(y * own / side, x * own / side, c) / 127.5f - 1.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<imagenet>(argc, argv); }
