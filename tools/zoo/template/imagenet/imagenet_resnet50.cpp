// SPDX-License-Identifier: Apache-2.0
// A residual network of 50 layers for pictures of 224 × 224 and 1,000 classes (He, Zhang, Ren and Sun, "Deep
// residual learning for image recognition", 2016; the strides are those of version 1.5), with the names of torchvision's and
// timm's weights: `--checkpoint_dir_for_init=model.safetensors` continues from them. A record has `image`, 224 · 224 · 3
// bytes, and `label`. Pictures of 32 × 32 are made larger, so that `synthetic:pictures` and CIFAR-10 will do for a look.
#include <edl/edl.hpp>

namespace nn = edl::nn;

constexpr int side = 224;

constexpr nn::conv2d convolution(int filters, int stride = 1, int kernel = 1) {
  return {.filters = filters,
          .kernel = kernel,
          .stride = stride,
          .padding = nn::padding::half,
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
      nn::max_pool{.window = 3, .stride = 2, .padding = nn::padding::half},
      nn::named<"layer1">(first(64, 1), block(64), block(64)),
      nn::named<"layer2">(first(128, 2), block(128), block(128), block(128)),
      nn::named<"layer3">(first(256, 2), block(256), block(256), block(256), block(256), block(256)),
      nn::named<"layer4">(first(512, 2), block(512), block(512)),
      nn::global_average_pool{}, nn::dense{.units = 1000});
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = 0.1f};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true, .weight_decay = 5e-5f};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 2500, .then = {.rate = 0.1f, .steps = 450000}};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = 16}, edl::random_flip{});
  using metrics = edl::metrics<edl::accuracy, edl::top_k<5>>;

  static constexpr edl::weight_name weight_names[] = {
      {"conv1.weight", "conv2d/kernel", edl::weight_order::pytorch},
      {"bn1.{weight,bias,running_mean,running_var}", "batch_normalization/{gamma,beta,moving_mean,moving_variance}"},
      {"layer{1,2,3,4}.#.conv{1,2,3}.weight",
       "layer{1,2,3,4}/sequential_#/residual/body/{conv2d,conv2d_1,conv2d_2}/kernel", edl::weight_order::pytorch},
      {"layer{1,2,3,4}.#.bn{1,2,3}.{weight,bias,running_mean,running_var}",
       "layer{1,2,3,4}/sequential_#/residual/body/{batch_normalization,batch_normalization_1,batch_normalization_2}/"
       "{gamma,beta,moving_mean,moving_variance}"},
      {"layer{1,2,3,4}.0.downsample.0.weight", "layer{1,2,3,4}/sequential/residual/projection/conv2d/kernel",
       edl::weight_order::pytorch},
      {"layer{1,2,3,4}.0.downsample.1.{weight,bias,running_mean,running_var}",
       "layer{1,2,3,4}/sequential/residual/projection/batch_normalization/"
       "{gamma,beta,moving_mean,moving_variance}"},
      {"fc.weight", "dense/kernel", edl::weight_order::pytorch},
      {"fc.bias", "dense/bias"}};

  static void feed(edl::example const& record, edl::sample<imagenet>& into, edl::mode m) {
    std::size_t const own = record.count("image") == std::size_t(side) * side * 3 ? side : 32;
    auto const picture = record.floats("image", {own, own, 3});
    static constexpr float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};  // of ImageNet
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          into.features(y, x, c) = (picture(y * own / side, x * own / side, c) / 255 - mean[c]) / deviation[c];
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<imagenet>(argc, argv); }
