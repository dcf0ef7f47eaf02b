// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/layer_norm.hpp"
#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/loss/distance.hpp"

/// Layers and losses that are expressions, for tests of the kernels that are made of them.
namespace expressions_test {

namespace nn = edl::nn;

struct trained_swish {
  constexpr auto forward(auto x, auto& layer) const {
    return x * nn::sigmoid(layer.variable("slope", x.channels(), nn::constant{1}) * x);
  }
};
/// Nothing but elements: its rows may begin anywhere.
struct gain {
  constexpr auto forward(auto x, auto& layer) const {
    return nn::tanh(x) * layer.variable("gain", nn::constant{1}) + 0.5 * x;
  }
};
/// Variables along each axis, functions of them, and sums over all samples for each.
struct all_axes {
  constexpr auto forward(auto x, auto& layer) const {
    auto const wide = nn::exp(layer.variable("wide", x.channels(), nn::constant{0}));
    auto const tall = layer.variable("tall", x.places(), nn::constant{1});
    auto const one = layer.variable("one", nn::constant{1});
    return wide * tall * (x - nn::mean(x, nn::places)) + nn::softplus(one) * x;
  }
};
struct instance_norm {
  constexpr auto forward(auto x, auto&) const {
    return (x - nn::mean(x, nn::places)) / nn::sqrt(nn::variance(x, nn::places) + 1e-3);
  }
};
struct norm_of_place {
  constexpr auto forward(auto x, auto&) const { return nn::norm(x, nn::channels); }
};
struct factorization {
  constexpr auto forward(auto x, auto&) const {
    return 0.5 *
           nn::sum(nn::square(nn::sum(x, nn::places)) - nn::sum(nn::square(x), nn::places), nn::channels);
  }
};
/// A layer of a cross network, and a product of two of its values.
struct cross {
  constexpr auto forward(auto x, auto& layer) const {
    auto const along = nn::sum(x * layer.variable("kernel", x.channels(), nn::constant{1}), nn::channels);
    return x * along + layer.variable("bias", x.channels(), nn::constant{0}) + x * nn::tanh(x);
  }
};
struct sample_softmax {
  constexpr auto forward(auto x, auto&) const {
    return nn::softmax(3 * x, nn::channels | nn::places) + nn::softmax(x);
  }
};
struct extremes {
  constexpr auto forward(auto x, auto&) const {
    return x * nn::max(x, nn::places) + nn::min(x, nn::channels | nn::places) +
           nn::one_hot(nn::argmax(x, nn::channels), x.channels());
  }
};
/// What is a NaN, told by numbers, and the logarithm of a sum of none.
struct no_numbers {
  constexpr auto forward(auto x, auto&) const {
    auto const given = nn::stop_gradient(x), below = nn::log(given);  // a NaN below 0
    auto const is = [](auto y) { return nn::equal(y, y); };
    auto const none = nn::logsumexp(nn::log(nn::relu(given)), nn::channels);
    return is(nn::max(0, below)) + 2 * is(nn::min(below, 0)) + 4 * is(nn::relu(below)) +
           8 * is(nn::max(below, nn::channels)) + 16 * is(nn::min(below, nn::places)) + nn::max(none, -9) +
           0.1 * x;
  }
};
/// Sums so far along both axes, of values that are stored for it.
struct running {
  constexpr auto forward(auto x, auto&) const {
    return nn::tanh(nn::cumsum(nn::square(x), nn::places)) + nn::cumsum(x, nn::channels) +
           nn::cumsum(nn::exp(nn::mean(x, nn::places)), nn::channels) +
           nn::cumsum(nn::sum(x, nn::channels), nn::places);
  }
};
struct own_dropout {
  double rate = 0.4;
  constexpr auto forward(auto x, auto& layer) const {
    auto const kept = layer.random_uniform() >= rate;
    return nn::where(layer.training(), x * kept / (1 - rate), x);
  }
};
struct noise {
  constexpr auto forward(auto x, auto& layer) const {
    auto const size = layer.variable("size", x.channels(), nn::constant{1});
    return nn::where(layer.training(), x + size * layer.random_normal(nn::channels), x) *
           (1 + layer.random_uniform({}));
  }
};

/// Statistics along each axis, and of one number.
struct running_statistics {
  constexpr auto forward(auto x, auto& layer) const {
    auto const mean = layer.statistic("mean", x.channels(), nn::constant{0});
    auto const places = layer.statistic("places", x.places(), nn::constant{1});
    auto const one = layer.statistic("one", nn::constant{1});
    layer.update(mean, x, 0.9);
    layer.update(places, nn::mean(nn::square(x - mean), nn::channels), 0.5);
    layer.update(one, nn::norm(x), 0.25);
    return layer.variable("gain", x.channels(), nn::constant{1}) * (x - mean) / nn::sqrt(places + one) *
           nn::norm(x, nn::places);
  }
};
/// Of rows that may begin anywhere.
struct running_scale {
  constexpr auto forward(auto x, auto& layer) const {
    auto const size = layer.statistic("size", nn::constant{1});
    layer.update(size, x * x, 0.9);
    return x / nn::sqrt(size);
  }
};

/// Of three values, of which the last has one place.
struct gate {
  static constexpr nn::axes inputs[] = {nn::channels | nn::places, nn::channels | nn::places, nn::channels};
  constexpr auto forward(auto z, auto a, auto b, auto&) const { return z * a + (1 - z) * b; }
};

struct quantile {
  float share = 0.9f;
  constexpr auto loss(auto output, auto label) const {
    auto const below = label - output;
    return nn::mean(nn::max(share * below, (share - 1) * below));
  }
};
struct relative {
  constexpr auto loss(auto output, auto label) const {
    auto const off = nn::sum(nn::square(nn::softmax(output) - label), nn::channels);
    return nn::sqrt(nn::mean(off, nn::places) + 0.1);
  }
};
struct focal {
  double gamma = 2;
  nn::class_weights class_weights{};
  static constexpr bool class_labels = true;
  constexpr auto loss(auto output, auto label) const {
    auto const surprise = nn::logsumexp(output, nn::channels) -
                          nn::sum(output * nn::one_hot(label, output.channels()), nn::channels);
    return nn::mean(nn::pow(1 - nn::exp(-surprise), gamma) * surprise);
  }
};
struct between {
  static constexpr int labels = 2;
  constexpr auto loss(auto output, auto label) const {
    return nn::mean(nn::max(label[0] - output, 0) + nn::max(output - label[1], 0) + 0.1 * nn::square(output));
  }
};

/// Odd ones: rows that are shorter than a warp and longer than what a warp takes, one place, one element.
inline constexpr std::array<edl::shape, 6> shapes{
    {{3, 5, 3}, {1, 1, 37}, {2, 3, 1}, {1, 2, 700}, {5, 7, 16}, {1, 1, 1}}};

template <class Visit>
void each_layer(Visit&& visit) {
  visit(nn::layer_norm{}), visit(nn::rms_norm{}), visit(nn::mish{}), visit(trained_swish{}), visit(gain{});
  visit(all_axes{}), visit(instance_norm{}), visit(norm_of_place{}), visit(factorization{}), visit(cross{});
  visit(sample_softmax{}), visit(extremes{}), visit(no_numbers{}), visit(running{}), visit(own_dropout{}),
      visit(noise{});
  visit(running_statistics{}), visit(running_scale{});
}

template <class Visit>
void each_loss(Visit&& visit) {
  visit(nn::huber{}), visit(nn::hinge{}), visit(nn::kullback_leibler{}), visit(quantile{}), visit(relative{});
  visit(focal{}), visit(between{});
}

}  // namespace expressions_test
