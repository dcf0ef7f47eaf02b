// SPDX-License-Identifier: Apache-2.0
// Expressions that are drawn from seeds: gradients against differences, single precision against double, and
// samples that know nothing of each other.
#include <array>
#include <cstdint>
#include <utility>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"

namespace compositions_test {

namespace nn = edl::nn;

constexpr std::uint64_t first_seed = 1;
constexpr std::size_t seeds = 3;

/// A layer of six operations, of which each takes what is there already. All of them meet in the result.
template <std::uint64_t Seed>
struct composition {
  constexpr auto forward(auto x, auto& layer) const {
    std::array<nn::tensor, 10> all{x, layer.variable("wide", x.channels(), nn::constant{1}),
                                   layer.variable("tall", x.places(), nn::constant{1}),
                                   layer.variable("one", nn::constant{1})};
    std::uint64_t state = Seed * 0x9e3779b97f4a7c15u + 1;
    auto const draw = [&](std::size_t below) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      return std::size_t(state % below);
    };
    std::size_t there = 4;
    while (there < all.size()) {
      nn::tensor const a = all[draw(there)], b = all[draw(there)];
      all[there++] = step(layer, draw(18), a, b);
    }
    nn::tensor sum = nn::tanh(all[0]);
    for (std::size_t i = 1; i < all.size(); ++i) sum = sum + 0.3 * all[i];
    return sum;
  }

  static constexpr nn::tensor step(auto& layer, std::size_t which, nn::tensor a, nn::tensor b) {
    auto const spans = [&](nn::axes of) { return has(layer.over_of(a), of); };
    switch (which) {
      case 0:
        return a + 0.5 * b;
      case 1:
        return a * b;
      case 2:
        return (a - b) / (1 + b * b);
      case 3:
        return nn::max(a, b) - 0.25;
      case 4:
        return nn::min(a, -b);
      case 5:
        return nn::where(a > b, a * a - b * b, a - b);
      case 6:
        return nn::exp(nn::tanh(a)) * nn::sigmoid(b);
      case 7:
        return nn::log(a * a + 1) + nn::sqrt(b * b + 0.5);
      case 8:
        return nn::gelu(a) - nn::softplus(b);
      case 9:
        return nn::abs(a + 0.1) * nn::erf(b);
      case 10:
        return nn::pow(nn::sigmoid(a) + 0.5, nn::tanh(b));
      case 11:
        return nn::expm1(-nn::square(a)) + nn::silu(b);
      case 12:
        return spans(nn::channels) ? nn::mean(a, nn::channels) * b : a - b;
      case 13:
        return spans(nn::places) ? nn::mean(a, nn::places) - b : a + b;
      case 14:
        return spans(nn::places | nn::channels) ? nn::variance(a, nn::places | nn::channels) + b
                                                : a * 0.5 + b;
      case 15:
        return spans(nn::channels) ? nn::softmax(a) * b : nn::tanh(a) + b;
      case 16:
        return spans(nn::places) ? nn::max(a, nn::places) * nn::tanh(b) : a + b;
      default:
        return spans(nn::channels) ? nn::logsumexp(a, nn::channels) - b : b - a;
    }
  }
};

template <std::uint64_t Seed>
void check_composition() {
  CAPTURE(Seed);
  composition<Seed> const l;
  for (edl::shape const in : {edl::shape{2, 2, 11}, {1, 3, 1}, {1, 1, 8}}) {
    check_gradients(l, in);
    lone_layer<composition<Seed>> h{.l = l, .in = in};
    h.forward();
    h.backward();
    check_single(h);
  }
}

TEST_CASE("compositions of operations") {
  []<std::uint64_t... I>(std::integer_sequence<std::uint64_t, I...>) {
    (check_composition<first_seed + I>(), ...);
  }(std::make_integer_sequence<std::uint64_t, seeds>{});
}

}  // namespace compositions_test
