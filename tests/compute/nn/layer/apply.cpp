// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/apply.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/plan.hpp"

namespace apply_test {

namespace nn = edl::nn;
using edl::mode;

namespace {

constexpr auto places(int units) { return nn::dense{.units = units, .each_place = true}; }

struct gate {
  constexpr auto forward(auto z, auto a, auto b, auto&) const { return z * a + (1 - z) * b; }
};
constexpr auto gated = nn::graph([](auto x) {
  auto const z = x | places(4) | nn::sigmoid{};
  auto const a = x | places(4);
  auto const b = x | places(4) | nn::tanh{};
  return nn::apply(gate{}, z, a, b) | places(3);
});

/// Operands that others read, one that is two operands, the input, and the result of the function.
constexpr auto entangled = nn::graph([](auto x) {
  auto const a = x | places(3) | nn::tanh{};
  auto const b = nn::apply(gate{}, a, x, a) + a;
  return nn::apply(gate{}, b, a, nn::apply(gate{}, x, b, x));
});

/// Equal gradients of two results, and of two variables.
struct sum_of_two {
  constexpr auto forward(auto a, auto b, auto& layer) const {
    auto const by = layer.variable("a", b.channels(), nn::constant{1});
    return nn::tanh(a + b + by + layer.variable("b", b.channels(), nn::constant{0.5}));
  }
};
constexpr auto summed =
    nn::graph([](auto x) { return nn::apply(sum_of_two{}, x | places(3), x | places(3)); });
struct plain_sum {
  constexpr auto forward(auto a, auto b, auto&) const { return a + b; }
};
constexpr auto plainly_summed = nn::graph([](auto x) { return nn::apply(plain_sum{}, x | places(3), x); });

/// Weights of the places of b by those of a, with variables, a sum and an option.
struct weighing {
  double sharpness = 1;

  constexpr auto forward(auto a, auto b, auto& layer) const {
    auto const by = layer.variable("by", a.channels(), nn::constant{1});
    auto const scores = nn::sum(a * by, nn::channels) * layer.variable("scale", nn::constant{1}) * sharpness;
    return b * nn::softmax(scores, nn::places) + nn::mean(a, nn::places);
  }
};
constexpr auto weighed = nn::graph([](auto x) {
  auto const a = x | places(4) | nn::tanh{};
  auto const b = nn::apply(weighing{2}, x | places(4), a);
  auto const c = nn::apply(weighing{0.5}, a, b);
  return nn::concat(c, a) | nn::dense{.units = 2};
});

/// Results of other extents: a place of all, a channel of each place, and one number.
struct modulation {
  static constexpr nn::axes inputs[] = {nn::channels | nn::places, nn::channels, nn::channels, nn::places,
                                        nn::axes{}};
  constexpr auto forward(auto x, auto scale, auto shift, auto mask, auto one, auto&) const {
    return (x * (1 + scale) + shift) * nn::sigmoid(mask) + nn::tanh(one) * x;
  }
};
constexpr auto modulated = nn::graph([](auto x) {
  auto const s = x | nn::global_average_pool{} | nn::dense{.units = 6} | nn::tanh{};
  auto const one = s | nn::dense{.units = 1};
  return nn::apply(modulation{}, x | places(5), s | nn::dense{.units = 5}, s | nn::dense{.units = 5},
                   x | places(1), one);
});

/// What it makes has fewer axes than its operands, of which the first has fewer, too.
struct attending {
  static constexpr nn::axes inputs[] = {nn::channels, nn::channels | nn::places};
  constexpr auto forward(auto query, auto memory, auto&) const {
    return nn::sum(memory * nn::softmax(nn::sum(query * memory, nn::channels), nn::places), nn::places);
  }
};
constexpr auto attended = nn::graph([](auto x) {
  auto const q = x | nn::global_average_pool{};
  return nn::apply(attending{}, q, x) | nn::dense{.units = 2};
});

/// A part of one and the rest of the other, by numbers that are the same in the backward pass.
struct mixture {
  constexpr auto forward(auto a, auto b, auto& layer) const {
    return nn::where(layer.random_uniform() < 0.5 * layer.training(), a, b);
  }
};
constexpr auto mixed = nn::graph([](auto x) {
  auto const a = x | places(8);
  return nn::concat(nn::apply(mixture{}, a, x | places(8)), nn::apply(mixture{}, a, x | places(8)));
});

template <class L>
lone_layer<std::remove_cvref_t<L>> after_both_passes(L const& l, edl::shape in, int batch = 3) {
  lone_layer<std::remove_cvref_t<L>> h{.l = l, .in = in, .batch = batch};
  h.forward();
  h.backward();
  return h;
}

}  // namespace

TEST_CASE("gradients of expressions of several results") {
  for (edl::shape const in : {edl::shape{1, 1, 5}, {2, 3, 4}}) {
    check_gradients(gated, in);
    check_gradients(summed, in);
    check_gradients(weighed, in);
    check_gradients(modulated, in);
    check_gradients(attended, in);
  }
  check_gradients(weighed, {1, 20, 3}, mode::training, 1);
  check_gradients(entangled, {2, 2, 3});
  check_gradients(entangled, {1, 1, 3}, mode::evaluation);
  check_gradients(plainly_summed, {1, 2, 3});
  check_gradients(mixed, {1, 2, 3});
  check_single(after_both_passes(weighed, {2, 3, 4}));
  check_single(after_both_passes(modulated, {2, 3, 4}));
}

TEST_CASE("an expression of several results is what it says") {
  auto const of_slices = nn::graph([](auto x) {
    auto const part = [&](int first) { return x | nn::slice{.first = first, .count = 2}; };
    return nn::apply(gate{}, part(0), part(2), part(4));
  });
  lone_layer<std::remove_cvref_t<decltype(of_slices)>> h{.l = of_slices, .in = {1, 1, 6}, .batch = 2};
  h.x = {0.5, 1, 2, 3, 4, 5, 0, 0.25, 6, 8, 7, 4};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 3, 7, 5});
}

TEST_CASE("random numbers of two expressions of one kind differ") {
  auto const h = after_both_passes(mixed, {1, 2, 3}, 1);
  CHECK(!std::equal(h.y.begin(), h.y.begin() + 8, h.y.begin() + 8));
}

TEST_CASE("variables of expressions are named as those of layers") {
  std::string names;
  for (auto const& v : nn::layout_of(weighed, {1, 2, 4}).variables) names += v.name + ' ';
  CHECK(names ==
        "dense/kernel dense/bias dense_1/kernel dense_1/bias weighing/by weighing/scale weighing_1/by "
        "weighing_1/scale dense_2/kernel dense_2/bias ");
}

namespace {

struct twice_if {
  bool yes = false;
  constexpr auto forward(auto a, auto b, auto&) const { return yes ? a * b : a + b * b; }
};
struct first_alone {
  constexpr auto forward(auto a, auto, auto&) const { return 2 * a; }
};
struct short_variable {
  constexpr auto forward(auto a, auto b, auto& layer) const {
    return a * b * layer.variable("by", nn::axis_length{nn::channels, 5}, nn::constant{1});
  }
};

}  // namespace

TEST_CASE("mistakes of expressions of several results are found") {
  using enum nn::expression::mistake_kind;
  auto const of = [](auto const& l, int units) {
    return nn::graph([=](auto x) { return nn::apply(l, x, x | places(units)); }).wrong({1, 2, 3});
  };
  CHECK(of(twice_if{}, 3).none());
  auto const found = of(twice_if{}, 4);
  CHECK(found.what == shapes_of_inputs);
  CHECK(found.first == edl::shape{1, 2, 3});
  CHECK(found.second == edl::shape{1, 2, 4});
  CHECK(of(attending{}, 3).first == edl::shape{1, 1, 3});
  CHECK(of(twice_if{true}, 3).what == depends_on_options);
  CHECK(of(first_alone{}, 3).what == unused_input);
  CHECK(of(short_variable{}, 3).what == length_of_variable);
  CHECK(of(short_variable{}, 3).line > 0);
}

namespace {

constexpr auto block = [](auto x) {
  auto const a = x | nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same} | nn::batch_norm{} |
                 nn::relu{} | nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same} |
                 nn::batch_norm{};
  return nn::apply(weighing{}, a, a | nn::sigmoid{});
};
constexpr auto blocks = nn::graph(nn::image{.height = 16, .width = 16, .channels = 8}, [](auto x) {
  auto const a = block(x);
  auto const b = nn::apply(sum_of_two{}, a, x);
  return nn::apply(gate{}, b, block(b), a) | nn::conv2d{.filters = 2};
});

}  // namespace

TEST_CASE("a graph with expressions keeps to a bound of memory, and computes the same bits") {
  using network = edl::model<blocks, edl::cpu>;
  network::options o{.max_batch = 4, .device = {.threads = 2, .kernels = edl::kernels::own}};
  auto const x = numbers<float>(4 * blocks.input.size(), 1);
  std::vector<std::size_t> told;
  auto const course = [&](network& m) {
    auto const y = m.forward(x, 4, mode::training);
    std::vector<float> all(y.begin(), y.end());
    std::ranges::copy(numbers<float>(y.size(), 9), m.output_gradient().begin());
    m.backward(x, 4, [&](std::size_t first) { told.push_back(first); });
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    return all;
  };
  network whole(o);
  auto const expected = course(whole);
  CHECK(std::ranges::is_sorted(told, std::greater{}));
  CHECK(std::ranges::all_of(expected, [](float v) { return std::isfinite(v); }));
  o.memory_budget = std::size_t(double(whole.memory().total()) * 0.95);
  network bounded(o);
  CHECK(bounded.memory().total() <= o.memory_budget);
  CHECK(bounded.plan().steps > 0);
  CHECK(course(bounded) == expected);
}

}  // namespace apply_test
