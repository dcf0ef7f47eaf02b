// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/nn/metrics.hpp"

namespace metric_list_test {

namespace nn = edl::nn;

using classes = std::vector<std::int32_t>;

TEST_CASE("a list of metrics is the metrics one after the other") {
  using list = edl::metrics<edl::accuracy, edl::top_k<2>, edl::mean_loss>;
  static_assert(list::totals == 6);
  edl::shape const output{.channels = 4};
  auto const x = check::normal<float>(40 * 4, 1);
  classes y(40);
  for (std::size_t i = 0; i < 40; ++i) y[i] = std::int32_t(i * 7 % 4);
  auto const sums = check::totals<list>(output, 40, x, y, 1.25);
  auto const values = list::values(sums);
  CHECK(values == edl::metric_values{{"accuracy", check::metric<edl::accuracy>(output, 40, x, y)},
                                     {"top_2_accuracy", check::metric<edl::top_k<2>>(output, 40, x, y)},
                                     {"loss", 1.25}});
  CHECK(values[0].second < values[1].second);
}

TEST_CASE("a list may mix metrics of many and of few totals, and may be empty") {
  using list = edl::metrics<edl::mse, edl::auc, edl::accuracy>;
  static_assert(list::totals == 2 + 398 + 2);
  auto const x = check::normal<float>(80, 3);
  std::vector<float> y(80);
  for (std::size_t i = 0; i < 80; ++i) y[i] = i % 3 == 0;
  auto const values = list::values(check::totals<list>({}, 80, x, y));
  CHECK(values[1] == std::pair<std::string, double>{"auc", check::metric<edl::auc>({}, 80, x, y)});
  CHECK(values[2] == std::pair<std::string, double>{"accuracy", check::metric<edl::accuracy>({}, 80, x, y)});
  CHECK(list::values(std::vector<double>(list::totals)) ==
        edl::metric_values{{"mse", 0}, {"auc", 0}, {"accuracy", 0}});
  CHECK(edl::metrics<>::values({}).empty());
  edl::metrics<>::update({}, {}, 80, edl::view<float>(x), edl::view<float>(y), 0);
}

namespace {

struct strict {
  static constexpr std::string_view name = "strict";
  static constexpr std::size_t totals = 1;
  static void update(std::span<double>, edl::shape, int, edl::view<float>, edl::view<std::int32_t> labels,
                     double) {
    for (std::int32_t const label : labels)
      if (label > 9)
        throw edl::data_error("label " + std::to_string(label) + " is of no class");
      else if (label > 2)
        throw std::out_of_range("label " + std::to_string(label) + " is above 2");
  }
  static double value(edl::view<double> sums) {
    if (sums[0] < 0) throw std::domain_error("a sum of -1 is below 0");
    return sums[0];
  }
};

}  // namespace

TEST_CASE("what a metric throws names the metric") {
  using list = edl::metrics<edl::accuracy, strict>;
  std::vector<double> sums(list::totals);
  std::vector<float> const x(8);
  classes const y{1, 7};
  CHECK_THROWS_WITH_AS(
      list::update(sums, {.channels = 4}, 2, edl::view<float>(x), edl::view<std::int32_t>(y), 0.0),
      "metric 'strict' of the model: label 7 is above 2", edl::error);
  // A fault of the data stays one: the task fails by it, and not the worker.
  classes const damaged{1, 12};
  CHECK_THROWS_WITH_AS(
      list::update(sums, {.channels = 4}, 2, edl::view<float>(x), edl::view<std::int32_t>(damaged), 0.0),
      "metric 'strict' of the model: label 12 is of no class", edl::data_error);
  sums.back() = -1;
  CHECK_THROWS_WITH_AS(list::values(sums), "metric 'strict' of the model: a sum of -1 is below 0",
                       edl::error);
}

namespace {

struct close {
  static constexpr std::string_view name = "close";
  float most = 0.5f;
  constexpr auto metric(auto output, auto label) const { return nn::mean(nn::abs(output - label) <= most); }
};
struct wrong {
  static constexpr std::string_view name = "wrong";
  static constexpr bool class_labels = true;
  constexpr auto metric(auto output, auto label) const {
    return 1 - nn::sum(nn::one_hot(label, output.channels()) *
                       nn::one_hot(nn::argmax(output, nn::channels), output.channels()));
  }
};
struct between {
  static constexpr std::string_view name = "between";
  static constexpr int labels = 2;
  constexpr auto metric(auto output, auto label) const {
    return nn::mean((output >= label[0]) * (output <= label[1]));
  }
};

}  // namespace

TEST_CASE("a metric that is an expression is a mean over records") {
  using all = edl::metrics<close, edl::mse>;
  static_assert(all::accept<float> && !all::accept<std::int32_t>);
  std::vector<float> const x{1, 2, 3, 4, 5, 6}, y{1, 2.25f, 9, 4, 6, 6};
  auto const sums = check::totals<all>({.channels = 2}, 3, x, y);
  CHECK(all::values(sums)[0].first == "close");
  CHECK(all::values(sums)[0].second == doctest::Approx(4.0 / 6));
  CHECK(all::values(std::vector<double>(all::totals))[0].second == 0);
  check::merges<nn::as_metric<close>>({.channels = 2}, 40, check::normal<double>(80, 1),
                                      check::normal<float>(80, 2), 2);
}

TEST_CASE("such a metric of classes, of records and of the places that have a label") {
  using rate = nn::as_metric<wrong>;
  edl::shape const output{.width = 2, .channels = 3};
  auto const x = check::normal<float>(5 * 6, 1);
  classes const y{0, -1, 2, 1, -1, -1, 0, 2, 1, 1};
  CHECK(check::metric<rate>(output, 5, x, y) ==
        doctest::Approx(1 - check::metric<edl::accuracy>(output, 5, x, y)));
  classes const records{0, 1, 2, 2, 1, 0, 0, 1, 2, 1};
  CHECK(check::metric<rate>({.channels = 3}, 10, x, records) ==
        doctest::Approx(1 - check::metric<edl::accuracy>({.channels = 3}, 10, x, records)));
  CHECK(check::metric<rate>(output, 1, std::vector<float>(6), classes{-1, -1}) == 0);
}

TEST_CASE("such a metric of labels that are lists") {
  using list = edl::metrics<between>;
  std::vector<float> const x{1, 2, 3}, y{0, 1, 0, 1, 2, 5};
  CHECK(list::values(check::totals<list>({}, 3, x, y))[0].second == doctest::Approx(2.0 / 3));
  CHECK_THROWS_WITH_AS(
      check::totals<list>({}, 3, x, std::vector<float>(9)),
      "metric 'between' of the model: it takes 2 numbers as the label of a record, and the loss has 3",
      edl::error);
}

}  // namespace metric_list_test

namespace metric_of_head_test {

namespace nn = edl::nn;

namespace {

constexpr auto two = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                               nn::head<"stars", 3>(nn::softmax_cross_entropy{}, 0.5f));
std::vector<float> const truth{1, 2, 0, 0, 0.25f, 1};  // three samples

}  // namespace

TEST_CASE("a metric of a head sees its outputs and labels alone") {
  using stars = edl::of_head<two, "stars", edl::accuracy>;
  using click = edl::of_head<two, "click", edl::mean_loss>;
  using all = edl::metrics<stars, click>;
  static_assert(all::accept<float>);
  std::vector<float> const x{2, 0, 1, 3, /**/ -1, 5, 0, 0, /**/ 0, 9, 0, 0};  // the third is wrong
  std::vector<double> sums(all::totals);
  all::update<float, float>(sums, {1, 1, 4}, 3, x, truth, 7);
  auto const values = all::values(sums);
  CHECK(values[0].first == "stars/accuracy");
  CHECK(values[0].second == doctest::Approx(2.0 / 3));
  CHECK(values[1].first == "click/loss");
  double const expected = (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-1.0)) + std::log(2.0)) / 3;
  CHECK(values[1].second == doctest::Approx(expected));
}

}  // namespace metric_of_head_test
