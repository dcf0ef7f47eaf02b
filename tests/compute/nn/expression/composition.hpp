// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/activations.hpp"

namespace compositions_test {

namespace nn = edl::nn;
namespace expression = edl::nn::expression;

/// A layer of six operations, of which each takes what is there already. All of them meet in the result.
struct composition {
  std::uint64_t seed;

  constexpr auto forward(auto x, auto& layer) const {
    std::array<nn::tensor, 10> all{x, layer.variable("wide", x.channels(), nn::constant{1}),
                                   layer.variable("tall", x.places(), nn::constant{1}),
                                   layer.variable("one", nn::constant{1})};
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    auto const draw = [&](std::size_t below) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      return std::size_t(state % below);
    };
    std::size_t there = 4;
    while (there < all.size()) {
      nn::tensor const a = all[draw(there)], b = all[draw(there)];
      all[there++] = step(layer, draw(20), a, b);
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
      case 17:
        return spans(nn::places) ? 0.5 * nn::cumsum(a, nn::places) - b : a - b;
      case 18:
        return spans(nn::channels) ? nn::tanh(nn::cumsum(a, nn::channels)) * b : a * b;
      default:
        return spans(nn::channels) ? nn::logsumexp(a, nn::channels) - b : b - a;
    }
  }
};

/// The values of nodes, each as its operation defines it. A value has an element for each of all samples,
/// places and channels, also along axes that its node lacks.
template <class T>
struct by_definition {
  edl::shape in;
  int batch;
  std::vector<T> x, dy, variables;
  std::size_t of_variable = 10;  ///< the numbers that each has room for

  std::size_t size() const { return std::size_t(batch) * in.size(); }
  std::size_t count(nn::axes along) const {
    return expression::elements_of(along, in) * (has(along, expression::samples) ? std::size_t(batch) : 1);
  }
  /// The number of an element among those of a value with these axes alone.
  std::size_t index(std::size_t i, nn::axes over) const {
    auto const c = std::size_t(in.channels), places = in.size() / c;
    std::size_t at = has(over, expression::samples) ? i / in.size() : 0;
    if (has(over, nn::places)) at = at * places + i / c % places;
    return has(over, nn::channels) ? at * c + i % c : at;
  }
  T element(expression::node const& n, std::size_t i, auto const& of) const {
    T y = 0;
    [&]<int... O>(std::integer_sequence<int, O...>) {
      (void)((int(n.what) == O &&
              (y = expression::compute<expression::operation(O)>(of(n.a, i), of(n.b, i), of(n.c, i)),
               true)) ||
             ...);
    }(std::make_integer_sequence<int, int(expression::operation::sum)>{});
    return y;
  }
  template <class Nodes>
  std::vector<std::vector<T>> values(Nodes const& nodes) const {
    using enum expression::operation;
    std::vector<std::vector<T>> all;
    all.reserve(std::size_t(nodes.size));
    auto const of = [&](int k, std::size_t i) { return k < 0 ? T(0) : all[std::size_t(k)][i]; };
    for (int k = 0; k < nodes.size; ++k) {
      expression::node const& n = nodes[k];
      std::vector<T> y(size());
      if (is_reduction(n.what)) {
        nn::axes const kept = without(expression::all_axes, n.along);
        std::vector<T> sums(count(kept), is_peak(n.what) ? std::numeric_limits<T>::lowest() : T(0));
        for (std::size_t i = 0; i < size(); ++i) {
          T& sum = sums[index(i, kept)];
          sum = is_peak(n.what) ? std::max(sum, of(n.a, i)) : sum + of(n.a, i);
        }
        for (std::size_t i = 0; i < size(); ++i) y[i] = sums[index(i, kept)];
      } else if (is_scan(n.what)) {
        std::size_t const at = n.along == nn::channels ? 1 : std::size_t(in.channels);
        std::size_t const length = count(n.along);
        for (std::size_t i = 0; i < size(); ++i)
          for (std::size_t j = 0, own = i / at % length; j < length; ++j)
            if (n.what == cumsum ? j <= own : j >= own) y[i] += of(n.a, i - own * at + j * at);
      } else {
        for (std::size_t i = 0; i < size(); ++i)
          y[i] = n.what == input      ? x[i]
                 : n.what == slope    ? dy[i]
                 : n.what == variable ? variables[std::size_t(n.index) * of_variable + index(i, n.over)]
                 : n.what == constant ? T(n.value)
                 : n.what == extent   ? T(count(n.along))
                                      : element(n, i, of);
      }
      all.push_back(std::move(y));
    }
    return all;
  }
};

}  // namespace compositions_test
