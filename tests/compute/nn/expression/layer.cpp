// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/expression/layer.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/device/any_device.hpp"
#include "edl/compute/device/cpu.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/layer/residual.hpp"
#include "edl/compute/nn/model.hpp"

namespace expression_layer_test {

namespace nn = edl::nn;

struct trained_swish {
  double initial = 1;
  constexpr auto forward(auto x, auto& layer) const {
    auto const slope = layer.variable("slope", x.channels(), nn::constant{initial});
    return x * nn::sigmoid(slope * x);
  }
};

/// Variables along each axis, one that is a function of another, and reductions over places.
struct all_axes {
  constexpr auto forward(auto x, auto& layer) const {
    auto const wide = nn::exp(layer.variable("wide", x.channels(), nn::constant{0}));
    auto const tall = layer.variable("tall", x.places(), nn::constant{1});
    auto const one = layer.variable("one", nn::constant{1});
    return wide * tall * (x - nn::mean(x, nn::places)) + nn::softplus(one) * x;
  }
};

/// One number of each place.
struct norm_of_place {
  static constexpr std::string_view name = "length";
  constexpr auto forward(auto x, auto&) const { return nn::sqrt(nn::sum(x * x, nn::channels)); }
};

struct scaled {
  float by = 1;
  constexpr auto forward(auto x, auto&) const { return by * x; }
};
struct plain_tanh {
  constexpr auto forward(auto x, auto&) const { return nn::tanh(x); }
};

constexpr auto network = nn::sequential(
    nn::image{.height = 6, .width = 5, .channels = 2}, nn::conv2d{.filters = 4}, trained_swish{.initial = 2},
    nn::residual(trained_swish{}), nn::concat(trained_swish{}, norm_of_place{}), nn::dense{.units = 3});

TEST_CASE("gradients of a layer with variables") {
  check_gradients(trained_swish{}, {3, 2, 5});
  check_gradients(trained_swish{}, {1, 1, 1});
  check_gradients(trained_swish{}, {9, 9, 3});
  check_gradients(all_axes{}, {3, 2, 5});
  check_gradients(all_axes{}, {1, 4, 9});
  check_gradients(norm_of_place{}, {3, 2, 5});
  auto const of = nn::gradient_errors(trained_swish{}, {2, 2, 4});
  CHECK(of.inputs < 1e-7);
  CHECK(of.variables < 1e-7);
}

TEST_CASE("options are those of the layer, not of its type") {
  lone_layer<scaled> h{.l = {.by = 3}, .in = {1, 1, 2}, .batch = 1};
  h.x = {1, -2};
  h.forward();
  CHECK(h.y == std::vector{3.0, -6.0});
}

TEST_CASE("variables are named and drawn as the layer says") {
  edl::model<network, edl::cpu> m({.max_batch = 2});
  std::vector<std::string> names;
  auto const layout = m.layout();
  for (auto const& v : layout.variables) names.push_back(v.name);
  CHECK(names == std::vector<std::string>{"conv2d/kernel", "conv2d/bias", "trained_swish/slope",
                                          "residual/body/slope", "concat/trained_swish/slope", "dense/kernel",
                                          "dense/bias"});
  CHECK(m.variables()[layout.variables[2].offset] == 2.0f);
  CHECK(m.variables()[layout.variables[3].offset] == 1.0f);
}

TEST_CASE("shapes follow from the operations") {
  CHECK(nn::as_layer(norm_of_place{}).output({6, 5, 4}) == edl::shape{6, 5, 1});
  CHECK(nn::as_layer(trained_swish{}).output({6, 5, 4}) == edl::shape{6, 5, 4});
  CHECK(edl::model<network, edl::cpu>::output == edl::shape{1, 1, 3});
}

TEST_CASE("the compiler knows which results the backward pass reads") {
  CHECK(nn::reads_y<nn::derived<plain_tanh>>);
  CHECK(!nn::reads_y<nn::derived<trained_swish>>);
  CHECK(nn::derived<trained_swish>::each_place);
  CHECK(!nn::derived<all_axes>::each_place);
}

TEST_CASE("two threads compute what one does") {
  auto const trained = [](int threads) {
    edl::model<network, edl::cpu> m({.max_batch = 700, .device = {.threads = threads}});
    auto const x = numbers<float>(700 * m.input.size(), 1);
    m.forward(x, 700, edl::mode::training);
    for (float& g : m.output_gradient()) g = 1e-3f;
    m.backward(x, 700);
    return std::vector<float>(m.gradients().begin(), m.gradients().end());
  };
  auto const one = trained(1), two = trained(2);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i] == doctest::Approx(two[i]).epsilon(1e-3));
}

TEST_CASE("a trained slope learns") {
  // y = x · σ(3 x) from a slope of 1, by gradient descent.
  lone_layer<trained_swish> h{.l = {}, .in = {1, 1, 4}, .batch = 32};
  h.parameters.assign(4, 1);
  double loss = 0, first = 0;
  for (int step = 0; step < 400; ++step) {
    h.forward();
    loss = 0;
    for (std::size_t i = 0; i < h.y.size(); ++i) {
      double const off = h.y[i] - h.x[i] / (1 + std::exp(-3 * h.x[i]));
      loss += off * off, h.dy[i] = off;
    }
    if (step == 0) first = loss;
    h.backward();
    for (std::size_t k = 0; k < 4; ++k) h.parameters[k] -= 0.5 * h.gradients[k];
  }
  CHECK(loss < first / 1000);
  for (double slope : h.parameters) CHECK(slope == doctest::Approx(3).epsilon(0.05));
}

struct own_dropout {
  double rate = 0.5;
  constexpr auto forward(auto x, auto& layer) const {
    auto const kept = layer.random_uniform() >= rate;
    return nn::where(layer.training(), x * kept / (1 - rate), x);
  }
};
/// Noise of whole rows, and of whole samples, with a trained size.
struct noise {
  constexpr auto forward(auto x, auto& layer) const {
    auto const size = layer.variable("size", x.channels(), nn::constant{1});
    return nn::where(layer.training(), x + size * layer.random_normal(nn::channels), x) *
           (1 + layer.random_uniform({}));
  }
};

TEST_CASE("random numbers are the same in both passes, and a function of layer, step and element") {
  check_gradients(own_dropout{}, {3, 2, 5});
  check_gradients(noise{}, {3, 2, 5});
  check_gradients(noise{}, {1, 1, 1}, edl::mode::evaluation);
  lone_layer<own_dropout> h{.l = {.rate = 0.25}, .in = {8, 8, 5}, .batch = 20};
  h.forward();
  h.backward();
  auto const first = h.y;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < h.x.size(); ++i) {
    bool const keep = h.random.child(0).uniform(i) >= 0.25f;
    kept += keep;
    REQUIRE(h.y[i] == doctest::Approx(keep ? h.x[i] / 0.75 : 0));
    REQUIRE(h.dx[i] == doctest::Approx(keep ? h.dy[i] / 0.75 : 0));
  }
  CHECK(double(kept) / double(h.x.size()) == doctest::Approx(0.75).epsilon(0.02));
  check_single(h);
  h.forward();  // as after a restart
  CHECK(h.y == first);
  h.random.step += 1;
  h.forward();
  CHECK(h.y != first);
  h.mode = edl::mode::evaluation;
  h.forward();
  CHECK(h.y == h.x);

  lone_layer<noise> n{.l = {}, .in = {2, 1, 3}, .batch = 2};
  n.x.assign(12, 0);
  n.parameters.assign(3, 1);
  n.forward();
  for (std::size_t i = 0; i < 12; ++i)  // a number for each channel, another factor for each sample
    CHECK(n.y[i] == doctest::Approx(n.random.child(0).normal(i / 6 * 3 + i % 3) *
                                    (1 + double(n.random.child(1).uniform(i / 6)))));
}

/// Normalised by what earlier minibatches were like, and by how far they were.
struct running_norm {
  double momentum = 0.75;
  constexpr auto forward(auto x, auto& layer) const {
    auto const mean = layer.statistic("mean", x.channels(), nn::constant{0});
    auto const variance = layer.statistic("variance", x.channels(), nn::constant{1});
    layer.update(mean, x, momentum);
    layer.update(variance, nn::square(x - mean), momentum);
    return layer.variable("gain", x.channels(), nn::constant{1}) * (x - mean) / nn::sqrt(variance + 1e-3);
  }
};
/// A statistic of places and one number, of which only the other's update needs the latter.
struct running_sizes {
  constexpr auto forward(auto x, auto& layer) const {
    auto const places = layer.statistic("places", x.places(), nn::constant{1});
    auto const one = layer.statistic("one", nn::constant{2});
    layer.update(one, nn::norm(x), 0);
    layer.update(places, nn::sum(nn::abs(x), nn::channels) / one, 0.5);
    return nn::tanh(x * places) * nn::norm(x, nn::channels);
  }
};
struct running_scale {
  constexpr auto forward(auto x, auto& layer) const {
    auto const size = layer.statistic("size", nn::constant{1});
    layer.update(size, x * x, 0.9);
    return x / nn::sqrt(size);
  }
};

TEST_CASE("gradients of a layer with running statistics") {
  for (edl::mode const m : {edl::mode::training, edl::mode::evaluation}) {
    check_gradients(running_norm{}, {3, 2, 5}, m);
    check_gradients(running_norm{}, {1, 1, 3}, m, 1);
    check_gradients(running_sizes{}, {3, 2, 5}, m);
    check_gradients(running_scale{}, {3, 2, 5}, m);
  }
  check_gradients(nn::sequential(nn::dense{.units = 4}, running_norm{}, nn::tanh{}, running_scale{}),
                  {1, 1, 3});
}

TEST_CASE("a running statistic moves towards the mean over a minibatch of training") {
  lone_layer<running_norm> h{.l = {}, .in = {2, 3, 5}, .batch = 7};
  REQUIRE(h.counts.state == 10);
  for (std::size_t k = 0; k < 5; ++k) h.state[k] = double(k), h.state[5 + k] = 1 + double(k);
  auto const before = h.state;
  auto const normalised = [&] {
    for (std::size_t i = 0; i < h.y.size(); ++i)
      REQUIRE(h.y[i] == doctest::Approx(h.parameters[i % 5] * (h.x[i] - before[i % 5]) /
                                        std::sqrt(before[5 + i % 5] + 1e-3)));
  };
  h.mode = edl::mode::evaluation;
  h.forward();
  CHECK(h.state == before);
  normalised();
  h.mode = edl::mode::training;
  h.forward();
  normalised();  // by the statistics of before
  for (std::size_t k = 0; k < 5; ++k) {
    double mean = 0, variance = 0;
    for (std::size_t i = k; i < h.x.size(); i += 5)
      mean += h.x[i] / 42, variance += (h.x[i] - before[k]) * (h.x[i] - before[k]) / 42;
    CHECK(h.state[k] == doctest::Approx(0.75 * before[k] + 0.25 * mean));
    CHECK(h.state[5 + k] == doctest::Approx(0.75 * before[5 + k] + 0.25 * variance));
  }

  lone_layer<running_sizes> sizes{.l = {}, .in = {1, 3, 2}, .batch = 2};
  REQUIRE(sizes.counts.state == 4);
  sizes.state = {1, 2, 3, 4};
  sizes.x = {1, -2, 3, 4, 5, 6, 7, 8, -9, 10, 11, 12};
  sizes.forward();
  CHECK(sizes.state[0] == doctest::Approx(0.5 + 0.5 * (3 + 15) / 2 / 4));
  CHECK(sizes.state[1] == doctest::Approx(1.0 + 0.5 * (7 + 19) / 2 / 4));
  CHECK(sizes.state[2] == doctest::Approx(1.5 + 0.5 * (11 + 23) / 2 / 4));
  CHECK(sizes.state[3] == doctest::Approx((std::sqrt(91) + std::sqrt(559)) / 2));
}

TEST_CASE(
    "running statistics change once a step, if results are computed again, and by any number of threads") {
  constexpr auto net = nn::sequential(nn::dense{.units = 4, .each_place = true}, running_norm{}, nn::tanh{},
                                      running_scale{}, running_sizes{}, nn::dense{.units = 3});
  using of_network = lone_layer<std::remove_const_t<decltype(net)>>;
  auto const trained = [&](std::vector<std::uint16_t> const& again) {
    nn::pass_size size(5, nn::storage::float32);
    size.again = again.empty() ? nullptr : again.data();
    of_network h{.l = net, .in = {3, 2, 2}, .batch = size};
    for (int step = 0; step < 2; ++step) {
      h.forward();
      h.backward();
    }
    return h;
  };
  auto const whole = trained({});
  CHECK(whole.state != std::vector<double>(whole.state.size(), 0.7));
  for (std::uint16_t end = 1; end < 6; ++end) {
    std::vector<std::uint16_t> again(6);
    std::fill_n(again.begin(), end, end);
    auto const h = trained(again);
    CHECK(h.state == whole.state);
    CHECK(h.dx == whole.dx);
    CHECK(h.gradients == whole.gradients);
  }

  static constexpr auto network =
      nn::sequential(nn::image{.height = 6, .width = 5, .channels = 2}, running_norm{}, running_sizes{},
                     running_scale{}, nn::dense{.units = 3});
  auto const state = [&](int threads) {
    edl::model<network, edl::cpu> m({.max_batch = 700, .device = {.threads = threads}});
    m.forward(numbers<float>(700 * m.input.size(), 1), 700, edl::mode::training);
    return std::vector<float>(m.state().begin(), m.state().end());
  };
  auto const one = state(1), two = state(2);
  REQUIRE(one.size() == 4 + 31 + 1);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i] == doctest::Approx(two[i]).epsilon(1e-5));
}

struct wrong_length {
  constexpr auto forward(auto x, auto& layer) const {
    return x * layer.variable("a", nn::axis_length{nn::channels, 5}, nn::constant{1});
  }
};
struct twice {
  constexpr auto forward(auto x, auto& layer) const {
    return x * layer.variable("a", nn::constant{1}) + layer.variable("a", nn::constant{2});
  }
};
struct unused {
  constexpr auto forward(auto x, auto& layer) const {
    (void)layer.variable("a", nn::constant{1});
    return x + 1;
  }
};
struct for_nothing {
  constexpr auto forward(auto x, auto&) const {
    (void)nn::exp(x);
    return x + 1;
  }
};
struct no_axis {
  constexpr auto forward(auto x, auto&) const { return nn::mean(nn::mean(x, nn::places), nn::places); }
};
struct no_input {
  constexpr auto forward(auto, auto& layer) const { return layer.variable("a", nn::constant{1}) * 2; }
};

struct forgotten {
  constexpr auto forward(auto x, auto& layer) const { return x - layer.statistic("mean", nn::constant{0}); }
};
/// A statistic whose update is wrong in some way.
template <auto Update>
struct updated {
  double momentum = 0.9;
  constexpr auto forward(auto x, auto& layer) const {
    auto const mean = layer.statistic("mean", nn::constant{0});
    auto const gain = layer.variable("gain", nn::constant{1});
    Update(layer, mean, gain, x, momentum);
    return gain * x - mean;
  }
};
constexpr auto well = [](auto& layer, auto mean, auto, auto x, double m) { layer.update(mean, x, m); };
constexpr auto again = [](auto& layer, auto mean, auto, auto x, double m) {
  layer.update(mean, x, m);
  layer.update(mean, x * x, m);
};
constexpr auto of_variable = [](auto& layer, auto, auto gain, auto x, double m) { layer.update(gain, x, m); };
constexpr auto by_variable = [](auto& layer, auto mean, auto gain, auto, double m) {
  layer.update(mean, gain, m);
};
struct unused_statistic {
  constexpr auto forward(auto x, auto& layer) const {
    auto const mean = layer.statistic("mean", nn::constant{0});
    layer.update(mean, x - mean, 0.9);
    return x + 1;
  }
};
struct named_twice {
  constexpr auto forward(auto x, auto& layer) const {
    auto const mean = layer.statistic("a", nn::constant{0});
    layer.update(mean, x, 0.9);
    return x * layer.variable("a", nn::constant{1}) - mean;
  }
};

/// Something that is never used, in a line: of an operator, or of a function of several operations.
template <auto F>
struct wasteful {
  constexpr auto forward(auto x, auto&) const {
    F(x);
    return x + 1;
  }
};
constexpr int first_line = __LINE__ + 1;
constexpr auto by_operator = [](auto x) { (void)(x * 3); };
constexpr auto by_negation = [](auto x) { (void)-x; };
constexpr auto by_number = [](auto x) { (void)(2 < x); };
constexpr auto by_choice = [](auto x) { (void)nn::clamp(x, -1, 1); };
constexpr auto by_power = [](auto x) { (void)nn::pow(x, 3); };
constexpr auto by_activation = [](auto x) { (void)nn::mish(x); };
constexpr auto by_softmax = [](auto x) { (void)nn::log_softmax(x); };
constexpr auto by_variance = [](auto x) { (void)nn::variance(x); };
constexpr auto by_sums = [](auto x) { (void)nn::cumsum(x, nn::channels | nn::places); };
constexpr auto by_axes = [](auto x) { (void)nn::softmax(nn::sum(x), nn::channels); };

/// Noise in evaluation, too.
struct always_random {
  constexpr auto forward(auto x, auto& layer) const { return x + layer.random_normal(); }
};

struct by_option {
  bool twice = false;
  constexpr auto forward(auto x, auto&) const { return twice ? x * 2 : x + 1; }
};

TEST_CASE("what does not fit is told by kind, line and shapes") {
  using kind = nn::expression::mistake_kind;
  auto const found = nn::as_layer(wrong_length{}).wrong({2, 2, 4});
  CHECK(nn::as_layer(wrong_length{}).check({2, 2, 4}) == edl::fit::tensors_do_not_fit);
  CHECK(nn::as_layer(wrong_length{}).check({2, 2, 5}) == edl::fit::fits);
  CHECK(found.what == kind::length_of_variable);
  CHECK(found.line > 0);
  CHECK(found.first == edl::shape{1, 1, 5});
  CHECK(found.second == edl::shape{1, 1, 4});

  auto const of = [](auto const& l) { return nn::expression::form_of(l, {2, 2, 4}).wrong.what; };
  CHECK(of(twice{}) == kind::name_of_variable);
  CHECK(of(unused{}) == kind::unused_variable);
  CHECK(of(for_nothing{}) == kind::unused_tensor);
  CHECK(of(no_axis{}) == kind::axis_of_reduction);
  CHECK(of(no_input{}) == kind::result_without_input);
  CHECK(of(always_random{}) == kind::random_outside_training);

  CHECK(of(forgotten{}) == kind::statistic_without_update);
  CHECK(of(updated<well>{}) == kind::none);
  CHECK(of(updated<again>{}) == kind::statistic_updated_twice);
  CHECK(of(updated<of_variable>{}) == kind::update_of_statistic);
  CHECK(of(updated<by_variable>{}) == kind::update_of_statistic);
  CHECK(of(updated<well>{.momentum = 1.1}) == kind::update_of_statistic);
  CHECK(of(updated<well>{.momentum = -0.1}) == kind::update_of_statistic);
  CHECK(of(unused_statistic{}) == kind::unused_variable);
  CHECK(of(named_twice{}) == kind::name_of_variable);
  CHECK(!nn::derived<running_norm>::each_place);

  auto const line = [](auto const& l) {
    return nn::expression::form_of(l, {2, 2, 4}).wrong.line - first_line;
  };
  CHECK(line(wasteful<by_operator>{}) == 0);
  CHECK(line(wasteful<by_negation>{}) == 1);
  CHECK(line(wasteful<by_number>{}) == 2);
  CHECK(line(wasteful<by_choice>{}) == 3);
  CHECK(line(wasteful<by_power>{}) == 4);
  CHECK(line(wasteful<by_activation>{}) == 5);
  CHECK(line(wasteful<by_softmax>{}) == 6);
  CHECK(line(wasteful<by_variance>{}) == 7);
  CHECK(line(wasteful<by_sums>{}) == 8);
  CHECK(of(wasteful<by_sums>{}) == kind::axis_of_cumsum);
  CHECK(line(wasteful<by_axes>{}) == 9);
  CHECK(of(wasteful<by_axes>{}) == kind::axis_of_reduction);

  CHECK(nn::as_layer(by_option{.twice = true}).wrong({2, 2, 4}).what == kind::depends_on_options);
}

}  // namespace expression_layer_test
