// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

/// ElasticDL's network for MNIST.
inline constexpr auto mnist = edl::nn::sequential(
    edl::nn::image{.height = 28, .width = 28, .channels = 1}, edl::nn::conv2d{.filters = 32, .kernel = 3},
    edl::nn::relu{}, edl::nn::conv2d{.filters = 64, .kernel = 3}, edl::nn::relu{}, edl::nn::batch_norm{},
    edl::nn::max_pool{.window = 2}, edl::nn::dropout{.rate = 0.25f}, edl::nn::dense{.units = 10});

/// The body of a residual block.
constexpr auto block(int filters) {
  return edl::nn::sequential(
      edl::nn::conv2d{.filters = filters, .kernel = 3, .padding = edl::nn::padding::same},
      edl::nn::batch_norm{}, edl::nn::relu{},
      edl::nn::conv2d{.filters = filters, .kernel = 3, .padding = edl::nn::padding::same},
      edl::nn::batch_norm{});
}

/// One of everything.
inline constexpr auto zoo = edl::nn::sequential(
    edl::nn::image{.height = 8, .width = 8, .channels = 2},
    edl::nn::conv2d{.filters = 8, .kernel = 3, .padding = edl::nn::padding::same, .groups = 2},
    edl::nn::leaky_relu{.slope = 0.1f},
    edl::nn::residual(edl::nn::sequential(edl::nn::batch_norm{}, edl::nn::relu{})),
    edl::nn::residual(edl::nn::conv2d{.filters = 4, .kernel = 1},
                      edl::nn::conv2d{.filters = 4, .use_bias = false}),
    edl::nn::concat(edl::nn::max_pool{.window = 2}, edl::nn::average_pool{.window = 2}),
    edl::nn::sum(edl::nn::sigmoid{}, edl::nn::tanh{}, edl::nn::identity{}), edl::nn::dropout{.rate = 0.2f},
    edl::nn::concat(edl::nn::global_max_pool{}, edl::nn::global_average_pool{},
                    edl::nn::sequential(edl::nn::flatten{})),
    edl::nn::dense{.units = 3}, edl::nn::softmax{});

/// In the manner of the fastest runs on CIFAR-10.
inline constexpr auto fast =
    edl::nn::sequential(edl::nn::image{.height = 8, .width = 8, .channels = 3},
                        edl::nn::conv2d{.filters = 6, .kernel = 2, .train_kernel = false}, edl::nn::gelu{},
                        edl::nn::conv2d{.filters = 8,
                                        .kernel = 3,
                                        .padding = edl::nn::padding::same,
                                        .use_bias = false,
                                        .kernel_initializer = edl::nn::pass_through{}},
                        edl::nn::max_pool{.window = 2}, edl::nn::batch_norm{.scale = false, .shift_gain = 8},
                        edl::nn::silu{}, edl::nn::max_pool{.window = 3},
                        edl::nn::dense{.units = 10, .use_bias = false}, edl::nn::scale{.factor = 0.25f});
