// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/metric/metric.hpp"

#include <doctest/doctest.h>

#include "edl/compute/nn/metrics.hpp"

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
