// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/metric/metric.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>

#include "edl/compute/nn/metrics.hpp"
#include "edl/core/random.hpp"

namespace metric_metric_test {

namespace {

// What a user writes, with nothing but what is needed.
struct mean_output {
  static constexpr char const* name = "mean_output";
  static constexpr int totals = 2;
  static void update(std::span<double> sums, edl::shape output, int batch, edl::view<float> outputs,
                     edl::view<std::int32_t>, double) {
    for (float each : outputs) sums[0] += double(each);
    sums[1] += double(batch) * double(output.size());
  }
  static double value(edl::view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};
struct no_name {
  static double value(edl::view<double>);
};

static_assert(edl::metric<mean_output> && edl::metric_for<mean_output, std::int32_t>);
static_assert(!edl::metric_for<mean_output, float>);
static_assert(!edl::metric<no_name> && !edl::metric<int>);
static_assert(edl::metric_for<edl::accuracy, float> && edl::metric_for<edl::accuracy, std::int32_t>);
static_assert(edl::metric_for<edl::mean_loss, float> && edl::metric_for<edl::mean_loss, std::int32_t>);
static_assert(edl::metric_for<edl::top_k<3>, std::int32_t> && !edl::metric_for<edl::top_k<3>, float>);
static_assert(edl::metric_for<edl::auc, float> && !edl::metric_for<edl::auc, std::int32_t>);
static_assert(edl::metric_for<edl::mse, float> && !edl::metric_for<edl::mse, std::int32_t>);
static_assert(edl::metric_for<edl::mae, float> && !edl::metric_for<edl::mae, std::int32_t>);
static_assert(edl::metric_for<edl::r2, float> && !edl::metric_for<edl::r2, std::int32_t>);
static_assert(edl::metric_for<edl::f1_score, float> && !edl::metric_for<edl::f1_score, std::int32_t>);
static_assert(edl::metric_for<edl::class_f1<1>, std::int32_t> && !edl::metric_for<edl::class_f1<1>, float>);
static_assert(edl::metric_for<edl::macro_f1<3>, std::int32_t> && !edl::metric_for<edl::macro_f1<3>, float>);
static_assert(edl::metric_for<edl::confusion<3>, std::int32_t> && !edl::metric_for<edl::confusion<3>, float>);
static_assert(edl::metric_for<edl::perplexity, std::int32_t> && !edl::metric_for<edl::perplexity, float>);

}  // namespace

TEST_CASE("a user's metric works beside the others") {
  using metrics = edl::metrics<edl::accuracy, mean_output>;
  std::vector<double> sums(metrics::totals);
  std::vector<float> const x{1, 2, 3, 6};
  std::vector<std::int32_t> const y{1, 0};
  metrics::update(std::span<double>(sums), {.channels = 2}, 2, edl::view<float>(x),
                  edl::view<std::int32_t>(y), 0);
  CHECK(metrics::values(sums) == edl::metric_values{{"accuracy", 0.5}, {"mean_output", 3}});
}

}  // namespace metric_metric_test

namespace metric_values_test {

using edl::metric_values;

namespace {

std::string text(double value) {
  std::string const all = edl::to_text({{"v", value}});
  return all.substr(6, all.size() - 7);
}

}  // namespace

TEST_CASE("metrics are printed as Python prints a dict") {
  CHECK(edl::to_text({{"accuracy", 0.97}}) == "{'accuracy': 0.97}");
  CHECK(edl::to_text({{"accuracy", 0.9713333}, {"loss", 0.125}}) == "{'accuracy': 0.9713333, 'loss': 0.125}");
  CHECK(edl::to_text({}) == "{}");
  CHECK(edl::to_text({{"it's", 1}, {"a\\b", 2}}) == "{'it\\'s': 1.0, 'a\\\\b': 2.0}");
}

TEST_CASE("numbers are printed as numpy.float32 prints them") {
  CHECK(text(0) == "0.0");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(1) == "1.0");
  CHECK(text(-2.5) == "-2.5");
  CHECK(text(10) == "10.0");
  CHECK(text(0.1) == "0.1");
  CHECK(text(1.0 / 3) == "0.33333334");
  CHECK(text(0.0001) == "0.0001");
  CHECK(text(0.00012345) == "0.00012345");
  CHECK(text(0.00001) == "1e-05");
  CHECK(text(1.5e-7) == "1.5e-07");
  CHECK(text(123456) == "123456.0");
  CHECK(text(123.456) == "123.456");
  CHECK(text(16777216) == "16777216.0");
  CHECK(text(1e15) == "1000000000000000.0");
  CHECK(text(1e16) == "1e+16");
  CHECK(text(3.4028234e38) == "3.4028235e+38");
  CHECK(text(1e-45) == "1e-45");
  CHECK(text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(text(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("what is printed reads back as the same float") {
  edl::random_stream const random{1, 0};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    float const value = float(random.normal(2 * i) * std::exp(20 * random.normal(2 * i + 1)));
    REQUIRE(std::strtof(text(double(value)).c_str(), nullptr) == value);
  }
}

TEST_CASE("a confusion matrix is one, with a row for each class") {
  CHECK(edl::to_text({{"accuracy", 0.5},
                      {"confusion/0/0", 50},
                      {"confusion/0/1", 2},
                      {"confusion/1/0", 1},
                      {"confusion/1/1", 47},
                      {"loss", 1}}) == "{'accuracy': 0.5, 'confusion': [[50, 2], [1, 47]], 'loss': 1.0}");
  CHECK(edl::to_text({{"a/confusion/0/0", 1}}) == "{'a/confusion': [[1]]}");
  CHECK(edl::to_text({{"confusion/0/0", 1}, {"confusion/0/1", 2}}) ==
        "{'confusion/0/0': 1.0, 'confusion/0/1': 2.0}");  // somebody's own
}

}  // namespace metric_values_test
