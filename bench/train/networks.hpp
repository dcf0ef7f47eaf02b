// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "resnet.hpp"

/// The networks that are measured, as peer.py has them; the residual ones are those of examples/cifar10.
namespace bench {

namespace nn = edl::nn;

constexpr auto convolution(int filters, int stride = 1, int kernel = 3, bool bias = false) {
  return nn::conv2d{
      .filters = filters, .kernel = kernel, .stride = stride, .padding = nn::padding::same, .use_bias = bias};
}

/// ElasticDL's functional MNIST model.
inline constexpr auto mnist = nn::sequential(
    nn::image{.height = 28, .width = 28, .channels = 1}, nn::conv2d{.filters = 32, .kernel = 3}, nn::relu{},
    nn::conv2d{.filters = 64, .kernel = 3}, nn::relu{}, nn::batch_norm{}, nn::max_pool{.window = 2},
    nn::dropout{.rate = 0.25f}, nn::dense{.units = 10});

inline constexpr auto mlp = nn::sequential(nn::features{.count = 784}, nn::dense{.units = 512}, nn::relu{},
                                           nn::dense{.units = 512}, nn::relu{}, nn::dense{.units = 10});

/// ElasticDL's functional CIFAR-10 model.
inline constexpr auto cifar = nn::sequential(
    nn::image{.height = 32, .width = 32, .channels = 3}, convolution(32, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(32, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.2f},
    convolution(64, 1, 3, true), nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(64, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.3f},
    convolution(128, 1, 3, true), nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(128, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.4f},
    nn::dense{.units = 10});

/// DeepFM with 26 columns of ids: a vector of 16 and a weight for each of a million, in one row.
inline constexpr int deepfm_columns = 26, deepfm_ids = 1'000'000;
inline constexpr auto deepfm_inputs =
    nn::inputs(nn::input<"ids">(nn::served_embedding{.count = deepfm_columns, .width = 17}));
inline constexpr auto deepfm_weights =
    nn::sequential(nn::slice{.first = 16}, nn::global_average_pool{}, nn::scale{deepfm_columns});
inline constexpr auto deepfm_deep =
    nn::sequential(nn::flatten{}, nn::dense{.units = 400}, nn::relu{}, nn::dense{.units = 400}, nn::relu{},
                   nn::dense{.units = 1});
inline constexpr auto deepfm_vectors =
    nn::sequential(nn::slice{.count = 16}, nn::sum(nn::factorization_machine{}, deepfm_deep));
inline constexpr auto deepfm = nn::sequential(
    deepfm_inputs, nn::concat(deepfm_inputs.from<"ids">(nn::sum(deepfm_weights, deepfm_vectors))));

/// Multiplications of a forward pass over one sample.
template <edl::nn::layer L>
constexpr double forward_of(L const& l, edl::shape in) {
  if constexpr (edl::nn::container<L>) {
    double sum = 0;
    l.children(in, [&](auto const& child, edl::shape s, std::string_view) {
      sum += forward_of(child, s);
      return true;
    });
    return sum;
  } else if constexpr (std::same_as<L, nn::conv2d>) {
    auto const g = l.geometry(in);
    return double(g.positions()) * double(g.patch()) * double(g.out.channels);
  } else if constexpr (std::same_as<L, nn::dense>) {
    return double(in.size()) * double(l.units);
  } else {
    return 0;
  }
}

}  // namespace bench
