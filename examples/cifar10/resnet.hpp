// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <edl/edl.hpp>

/// Residual networks for CIFAR-10 (He, Zhang, Ren and Sun, "Deep residual learning for image recognition",
/// 2016).
namespace resnet {

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
constexpr nn::image picture{.height = 32, .width = 32, .channels = 3};

constexpr auto body(int filters, int stride) {
  return nn::sequential(convolution(filters, stride), norm, nn::relu{}, convolution(filters), norm);
}

/// Keeps the shape.
constexpr auto block(int filters) { return nn::residual(body(filters, 1)); }

/// Halves height and width; the shortcut is a convolution of 1 × 1.
constexpr auto halving(int filters) {
  return nn::residual(body(filters, 2), nn::sequential(convolution(filters, 2, 1), norm));
}

/// Three stages of three blocks.
inline constexpr auto of_20_layers =
    nn::sequential(picture, convolution(16), norm, nn::relu{}, block(16), nn::relu{}, block(16), nn::relu{},
                   block(16), nn::relu{}, halving(32), nn::relu{}, block(32), nn::relu{}, block(32),
                   nn::relu{}, halving(64), nn::relu{}, block(64), nn::relu{}, block(64), nn::relu{},
                   nn::global_average_pool{}, nn::dense{.units = 10});

/// Four stages of two wide blocks.
inline constexpr auto of_18_layers = nn::sequential(
    picture, convolution(64), norm, nn::relu{}, block(64), nn::relu{}, block(64), nn::relu{}, halving(128),
    nn::relu{}, block(128), nn::relu{}, halving(256), nn::relu{}, block(256), nn::relu{}, halving(512),
    nn::relu{}, block(512), nn::relu{}, nn::global_average_pool{}, nn::dense{.units = 10});

/// A record of CIFAR-10 into the sample of any model here; what is predicted needs no label.
template <class Sample>
void feed(edl::example const& record, Sample& into, edl::mode m) {
  into.features = record.floats("image", {32, 32, 3}) / 127.5f - 1.0f;
  if (m != edl::mode::prediction) into.label = record.integer("label");
}

}  // namespace resnet
