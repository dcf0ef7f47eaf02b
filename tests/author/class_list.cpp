// SPDX-License-Identifier: Apache-2.0
#include "edl/author/class_list.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace class_list_test {

namespace nn = edl::nn;

namespace {

constexpr int length = 6;

/// Which of three numbers is the largest, at each place.
struct tagger {
  static constexpr auto network = nn::sequential(
      nn::image{.height = 1, .width = length, .channels = 3}, nn::conv2d{.filters = 16, .kernel = {1, 1}},
      nn::group_norm{.groups = 4}, nn::silu{}, nn::conv2d{.filters = 3, .kernel = {1, 1}});
  static constexpr nn::sequence_cross_entropy loss{.label_smoothing = 0.05f, .class_weights = {1, 2, 1}};
  static constexpr edl::lion optimizer{};
  using metrics = edl::metrics<edl::accuracy, edl::macro_f1<3>, edl::confusion<3>>;
  static void feed(edl::example const& record, edl::sample<tagger>& into, edl::mode) {
    into.features = record.floats("x", {1, length, 3});
    into.label = record.integers("y");
  }
};

edl::example record(std::uint64_t number) {
  edl::example e;
  edl::example_builder b(e);
  auto const x = b.floats("x", 3 * length);
  auto const y = b.integers("y", std::size_t(length) - number % 3);  // the last places are missing
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(edl::random_stream{5, number}.normal(i));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = std::max_element(x.begin() + long(3 * i), x.begin() + long(3 * i + 3)) - x.begin() - long(3 * i);
  return e;
}

}  // namespace

TEST_CASE("a list of class labels is set place by place, and read") {
  std::vector<std::int32_t> row(3, 7);
  edl::class_list const list(row);
  for (std::size_t i = 0; i < 3; ++i) CHECK(list[i] == -1);
  list[2] = 5;
  list(0) = std::int64_t(list[2]) + 1;
  CHECK(row == std::vector<std::int32_t>{6, edl::author::unfed_class, 5});
  list[1] = list[0];
  CHECK(row[1] == 6);
  CHECK_THROWS_AS(list[3] = 1, edl::data_error);
}

TEST_CASE("a network learns the labels of places, and what has none is left out of the metrics") {
  constexpr int rows = 32;
  auto const t = edl::author::make_trainer<tagger>({.max_batch = rows, .seed = 1});
  auto b = t->make_batch();
  b.rows = rows;
  for (int row = 0; row < rows; ++row) t->feed(record(std::uint64_t(row)), b, row, edl::mode::training);
  auto const variables = t->variables();
  for (std::size_t i = 0; i < variables.size(); ++i)
    variables[i] = float(edl::random_stream{9, 0}.normal(i)) * 0.3f;
  std::vector<float> slot(variables.size());
  std::vector<std::span<float>> const slots{slot};
  edl::lion const optimizer{};
  double const before = t->train(b, 0, {});
  for (std::uint64_t step = 1; step <= 200; ++step) {
    optimizer.apply(variables, t->gradients(), std::span<std::span<float> const>(slots), 0.01f, step);
    t->variables_written();
    t->train(b, step, {});
  }
  std::vector<double> totals(t->totals());
  t->evaluate(b, totals);
  CHECK(t->train(b, 200, {}) < before / 2);
  CHECK(totals[1] == 32 * length - 11 * 1 - 10 * 2);
  auto const values = edl::model_traits<tagger>::metrics::values(totals);
  CHECK(values[0].second > 0.9);
  CHECK(values[1].first == "macro_f1");
  CHECK(values[1].second > 0.9);
  double counted = 0;
  for (std::size_t i = 2; i < values.size(); ++i) counted += values[i].second;
  CHECK(counted == totals[1]);
}

}  // namespace class_list_test
