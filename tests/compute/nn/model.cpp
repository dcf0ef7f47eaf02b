// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "compute/nn/networks.hpp"
#include "edl/compute/device/exact_products.hpp"
#include "edl/core/error.hpp"

namespace model_test {

namespace nn = edl::nn;
using edl::mode;

namespace {

using mnist_model = edl::model<mnist, edl::cpu>;
// 3·3·1·32 + 32, 3·3·32·64 + 64, 2·64, 12·12·64·10 + 10
static_assert(mnist_model::parameter_count == 320 + 18'496 + 128 + 92'170);
static_assert(mnist_model::state_count == 128);
static_assert(mnist_model::input == edl::shape{28, 28, 1} && mnist_model::output == edl::shape{1, 1, 10});

using zoo_model = edl::model<zoo, edl::basic_cpu<double>>;
static_assert(zoo_model::output == edl::shape{1, 1, 3});

constexpr auto small =
    nn::sequential(nn::features{.count = 2}, nn::dense{.units = 16}, nn::tanh{}, nn::batch_norm{},
                   nn::dropout{.rate = 0.1f}, nn::dense{.units = 1}, nn::sigmoid{});
using small_model = edl::model<small, edl::cpu>;

/// Whatever passes samples on as bfloat16, beside what does not: the last relu, the pools, a convolution that
/// has to be exact.
constexpr auto of_convolutions = nn::sequential(
    nn::image{.height = 9, .width = 8, .channels = 3}, nn::conv2d{.filters = 6}, nn::relu{},
    nn::conv2d{.filters = 8, .kernel = 3}, nn::relu{}, nn::batch_norm{}, nn::residual(block(8)), nn::relu{},
    nn::residual(block(12), nn::sequential(nn::conv2d{.filters = 12}, nn::batch_norm{})), nn::relu{},
    nn::residual(block(12)), nn::conv2d{.filters = 12, .float32 = true}, nn::batch_norm{}, nn::relu{},
    nn::max_pool{}, nn::conv2d{.filters = 5}, nn::batch_norm{}, nn::gelu{}, nn::global_average_pool{},
    nn::dense{.units = 3});
using convolutions = edl::model<of_convolutions, edl::cpu>;

}  // namespace

TEST_CASE("the arenas are as long as the layout says") {
  mnist_model m;
  auto const layout = mnist_model::layout();
  CHECK(layout.parameters == 111'114);
  CHECK(layout.state == 128);
  CHECK(m.variables().size() == layout.size());
  CHECK(m.parameters().size() == layout.parameters);
  CHECK(m.parameters().data() == m.variables().data());
  CHECK(m.state().data() == m.variables().data() + layout.parameters);
  CHECK(m.gradients().size() == layout.parameters);
}

TEST_CASE("memory is said beforehand, and grows with the batch alone") {
  constexpr auto one = mnist_model::memory(1), many = mnist_model::memory(64);
  CHECK(one.variables == (111'114 + 128) * 4);
  CHECK(one.gradients == 111'114 * 4);
  CHECK(many.variables == one.variables);
  // One result each of conv with its relu, of batch norm with its pool, and of dropout, with its bytes.
  std::size_t const elements = 64 * (26 * 26 * 32 + 24 * 24 * 64 + 2 * 12 * 12 * 64 + 2 * 10);
  CHECK(many.activations == 4 * (elements + 2 * 64) + 64 * 12 * 12 * 64);
  CHECK(mnist_model({.max_batch = 64}).memory().total() == many.total());
}

TEST_CASE("the gradients of a whole model, against central differences") {
  int const batch = 3;
  zoo_model m({.max_batch = 4, .seed = 3});
  auto const x = numbers<double>(batch * zoo_model::input.size(), 1), dy = numbers<double>(batch * 3, 2);
  for (auto what : {mode::training, mode::evaluation}) {
    auto const value = [&] {
      std::vector<double> const carried(m.state().begin(), m.state().end());
      auto const y = m.forward(x, batch, what, 9);
      std::ranges::copy(carried, m.state().begin());
      double sum = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    value();
    std::ranges::copy(dy, m.output_gradient().begin());
    m.backward(x, batch);
    std::vector<double> const analytic(m.gradients().begin(), m.gradients().end());
    double most = 0;
    for (std::size_t i = 0; i < analytic.size(); ++i) {
      double const at = m.parameters()[i], h = 1e-5;
      m.parameters()[i] = at + h;
      double const above = value();
      m.parameters()[i] = at - h;
      double const below = value();
      m.parameters()[i] = at;
      most = std::max(most, std::abs((above - below) / (2 * h) - analytic[i]) / (1 + std::abs(analytic[i])));
    }
    CHECK(most < 1e-7);
  }
}

TEST_CASE("equal seeds and steps give equal bits, also in a batch of another size") {
  zoo_model a({.max_batch = 2, .seed = 7}), b({.max_batch = 5, .seed = 7}), c({.max_batch = 2, .seed = 8});
  CHECK(std::ranges::equal(a.variables(), b.variables()));
  CHECK_FALSE(std::ranges::equal(a.variables(), c.variables()));
  auto const x = numbers<double>(2 * zoo_model::input.size(), 1);
  auto const forward = [&](auto& m, std::uint64_t step) {
    auto const y = m.forward(x, 2, mode::training, step);
    return std::vector<double>(y.begin(), y.end());
  };
  auto const first = forward(a, 4);
  CHECK(forward(b, 4) == first);
  CHECK(forward(a, 5) != first);
}

TEST_CASE("a range of the variables is initialised alone, the same as in the whole") {
  mnist_model m({.max_batch = 1, .seed = 21});
  for (std::size_t first : {0, 300, 18'900, 111'100}) {
    std::vector<float> part(142);
    mnist_model::initialise(21, first, part);
    CHECK(std::ranges::equal(part, m.variables().subspan(first, part.size())));
  }
  std::vector<float> beyond(200);
  CHECK_THROWS_AS(mnist_model::initialise(21, 111'114, beyond), edl::error);
  auto const before = std::vector<float>(m.variables().begin(), m.variables().end());
  m.initialise(22);
  CHECK_FALSE(std::ranges::equal(before, m.variables()));
  m.initialise(21);
  CHECK(std::ranges::equal(before, m.variables()));
}

TEST_CASE("evaluation and prediction change nothing and agree") {
  small_model m({.max_batch = 4});
  auto const x = numbers<float>(8, 1);
  auto const before = std::vector<float>(m.variables().begin(), m.variables().end());
  auto const y = m.forward(x, 4, mode::evaluation);
  std::vector<float> const kept(y.begin(), y.end());
  CHECK(std::ranges::equal(m.forward(x, 4, mode::prediction, 3), kept));
  CHECK(std::ranges::equal(before, m.variables()));
  m.forward(x, 4, mode::training);
  CHECK_FALSE(std::ranges::equal(before, m.variables()));
}

TEST_CASE("what does not fit the model is refused by name") {
  small_model m({.max_batch = 4});
  std::vector<float> const x(10);
  CHECK_THROWS_WITH_AS(m.forward(x, 5, mode::training), doctest::Contains("raise max_batch"), edl::error);
  CHECK_THROWS_WITH_AS(m.forward(x, 4, mode::training), doctest::Contains("10 elements of input"),
                       edl::error);
  CHECK_THROWS_AS(m.forward({}, 0, mode::training), edl::error);
  CHECK_THROWS_WITH_AS(m.backward(std::span(x).first(8), 4), doctest::Contains("forward pass before"),
                       edl::error);
  CHECK_THROWS_AS(small_model({.max_batch = 0}), edl::error);
  CHECK_THROWS_AS(small_model({.max_batch = -3}), edl::error);
}

TEST_CASE("a model moves, and its spans stay") {
  small_model a({.max_batch = 2});
  auto const at = a.variables().data();
  small_model b = std::move(a);
  CHECK(b.variables().data() == at);
  b.forward(numbers<float>(4, 1), 2, mode::training);
}

TEST_CASE("a model learns: is a point within the circle?") {
  int const batch = 32;
  small_model m({.max_batch = batch, .seed = 5});
  double first = 0, last = 0;
  for (std::uint64_t step = 0; step < 400; ++step) {
    auto const x = numbers<float>(2 * batch, step);
    auto const y = m.forward(x, batch, mode::training, step);
    double loss = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      float const within = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1] < 0.6f ? 1.0f : 0.0f;
      loss += double((y[i] - within) * (y[i] - within)) / batch;
      m.output_gradient()[i] = 2 * (y[i] - within) / float(batch);
    }
    m.backward(x, batch);
    for (std::size_t i = 0; i < m.parameters().size(); ++i) m.parameters()[i] -= 0.5f * m.gradients()[i];
    if (step < 20) first += loss / 20;
    if (step >= 380) last += loss / 20;
  }
  CHECK(first > 0.2);
  CHECK(last < 0.12);
}

namespace {

/// Containers of all kinds, within each other.
constexpr auto nested = nn::sequential(
    nn::image{.height = 6, .width = 6, .channels = 2}, nn::conv2d{.filters = 4, .kernel = 3}, nn::relu{},
    nn::sequential(nn::conv2d{.filters = 4, .kernel = 1}, nn::batch_norm{}, nn::relu{}),
    nn::residual(nn::sequential(nn::conv2d{.filters = 4, .kernel = 1}, nn::relu{},
                                nn::conv2d{.filters = 4, .kernel = 1})),
    nn::relu{},
    nn::residual(nn::sequential(nn::conv2d{.filters = 6, .kernel = 1}, nn::batch_norm{}),
                 nn::sequential(nn::conv2d{.filters = 6, .kernel = 1}, nn::batch_norm{})),
    nn::relu{},
    nn::concat(nn::sequential(nn::conv2d{.filters = 2, .kernel = 1}, nn::conv2d{.filters = 2, .kernel = 1}),
               nn::conv2d{.filters = 3, .kernel = 1}),
    nn::dense{.units = 5}, nn::tanh{}, nn::dense{.units = 3});
using nested_model = edl::model<nested, edl::basic_cpu<double>>;

}  // namespace

TEST_CASE("who listens to a backward pass is told of gradients that stay as they are") {
  int const batch = 2;
  nested_model m({.max_batch = batch, .seed = 5});
  auto const x = numbers<double>(batch * nested_model::input.size(), 1), dy = numbers<double>(batch * 3, 2);
  m.forward(x, batch, mode::training);
  std::ranges::copy(dy, m.output_gradient().begin());
  std::ranges::fill(m.gradients(), -1e9);
  struct told {
    std::size_t first;
    std::vector<double> gradients;
  };
  std::vector<told> all;
  m.backward(x, batch, [&](std::size_t first) {
    auto const there = m.gradients().subspan(first);
    all.push_back({first, {there.begin(), there.end()}});
  });
  REQUIRE(!all.empty());
  CHECK(all.back().first == 0);
  std::vector<std::size_t> firsts;
  for (auto const& t : all) {
    CHECK(std::ranges::equal(t.gradients, m.gradients().subspan(t.first)));
    if (firsts.empty() || firsts.back() != t.first) firsts.push_back(t.first);
  }
  CHECK(std::ranges::is_sorted(firsts, std::greater<>()));
  std::vector<std::string> names;
  for (std::size_t const first : firsts)
    for (auto const& v : nested_model::layout().variables)
      if (v.offset == first) names.push_back(v.name);
  // Branches side by side are told of as one, and so is a body whose projection comes after it.
  CHECK(names == std::vector<std::string>{
                     "dense_1/kernel", "dense/kernel", "concat/sequential/conv2d/kernel",
                     "residual_1/projection/batch_normalization/gamma", "residual_1/projection/conv2d/kernel",
                     "residual_1/body/conv2d/kernel", "residual/body/conv2d_1/kernel",
                     "residual/body/conv2d/kernel", "sequential/batch_normalization/gamma",
                     "sequential/conv2d/kernel", "conv2d/kernel"});
}

TEST_CASE("while products are exact, samples are wide, and the memory grows with them") {
  constexpr int batch = 8;
  edl::cpu_options const rounds{.kernels = edl::kernels::own, .precision = edl::precision::bfloat16};
  auto const x = numbers<float>(batch * convolutions::input.size(), 1);
  convolutions plain({.max_batch = batch}), narrow({.max_batch = batch, .device = rounds});
  auto const said = [&](convolutions& m) {
    auto const y = m.forward(x, batch, mode::evaluation);
    return std::vector<float>(y.begin(), y.end());
  };
  auto const expected = said(plain), before = said(narrow);
  {
    edl::exact_products const exact(*narrow.device(), true);
    CHECK(greatest_difference(said(narrow), expected) < 1e-5);
  }
  CHECK(said(narrow) == before);
  CHECK(greatest_difference(before, expected) > 1e-5);
}

TEST_CASE("a shape that needs more memory than the network's own gets it") {
  static constexpr auto pooled =
      nn::sequential(nn::image{.height = 8, .width = 8, .channels = 3}, nn::conv2d{.filters = 8},
                     nn::batch_norm{}, nn::relu{}, nn::max_pool{.window = 2, .padding = nn::padding::same},
                     nn::global_average_pool{}, nn::dense{.units = 2});
  using of_any_size = edl::model<pooled, edl::cpu>;
  edl::shape const odd{7, 7, 3};
  for (auto const keep : {nn::storage::recomputed, nn::storage::compact}) {
    of_any_size m({.max_batch = 64,
                   .device = {.kernels = edl::kernels::own, .precision = edl::precision::bfloat16},
                   .keep = keep});
    // Its windows do not lie side by side: the pool comes by itself, and keeps what it is made of.
    nn::pass_size const size{64, keep, true};
    REQUIRE(pooled.body.workspace(odd, size) > pooled.body.workspace(pooled.input, size));
    auto const x = numbers<float>(64 * odd.size(), 1);
    m.forward(x, 64, mode::training, 0, odd);
    std::ranges::fill(m.output_gradient(), 1.0f);
    m.backward(x, 64);
    for (float const g : m.gradients()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("with products of bfloat16, samples between convolutions and normalisations are bfloat16") {
  constexpr int batch = 64;
  edl::cpu_options const rounds{
      .threads = 2, .kernels = edl::kernels::own, .precision = edl::precision::bfloat16};
  auto const x = numbers<float>(batch * convolutions::input.size(), 1);
  auto const dy = numbers<float>(batch * convolutions::output.size(), 2);
  struct course {
    std::vector<float> y, gradients;
    edl::model_memory memory;
  };
  auto const run = [&](edl::cpu_options const& o, nn::storage keep) {
    convolutions m({.max_batch = batch, .device = o, .keep = keep});
    auto const y = m.forward(x, batch, mode::training);
    std::vector<float> const there(y.begin(), y.end());
    std::ranges::copy(dy, m.output_gradient().begin());
    m.backward(x, batch);
    return course{there, {m.gradients().begin(), m.gradients().end()}, m.memory()};
  };
  auto const off = [](std::vector<float> const& a, std::vector<float> const& b) {
    double difference = 0, all = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(double(a[i]) - double(b[i]), 2);
      all += std::pow(double(b[i]), 2);
    }
    return std::sqrt(difference / all);
  };
  auto const exact = run({}, nn::storage::float32), wide = run(rounds, nn::storage::float32);
  double const noise = off(wide.gradients, exact.gradients);  // of the products alone
  for (auto const keep : {nn::storage::recomputed, nn::storage::bfloat16, nn::storage::compact}) {
    CAPTURE(int(keep));
    auto const narrow = run(rounds, keep);
    CHECK(narrow.y != wide.y);
    CHECK(off(narrow.y, exact.y) < 3 * off(wide.y, exact.y));
    CHECK(off(narrow.gradients, exact.gradients) < 3 * noise);
    auto const before = run({}, keep).memory;
    CHECK(narrow.memory.activations + narrow.memory.scratch <
          (before.activations + before.scratch) * (keep == nn::storage::recomputed ? 0.7 : 1.0));
  }
}

}  // namespace model_test
