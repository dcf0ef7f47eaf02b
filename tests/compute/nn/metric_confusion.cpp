// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metric/confusion.hpp"
#include "edl/compute/nn/metrics.hpp"

namespace metric_confusion_test {

using classes = std::vector<std::int32_t>;

namespace {

constexpr auto two = edl::nn::heads(edl::nn::head<"a", 2>(edl::nn::softmax_cross_entropy{}),
                                    edl::nn::head<"b", 1>(edl::nn::sigmoid_cross_entropy{}));

}  // namespace

TEST_CASE("confusion: each class against each, by name, beside other metrics") {
  std::vector<float> const x{2, 1, 1, 2, 3, 0, 0, 1};
  using list = edl::metrics<edl::accuracy, edl::confusion<2>, edl::mean_loss>;
  auto const sums = check::totals<list>({.channels = 2}, 4, x, classes{0, 0, 1, 1}, 0.5);
  CHECK(list::values(sums) == edl::metric_values{{"accuracy", 0.5},
                                                 {"confusion/0/0", 1},
                                                 {"confusion/0/1", 1},
                                                 {"confusion/1/0", 1},
                                                 {"confusion/1/1", 1},
                                                 {"loss", 0.5}});
  CHECK(edl::metrics<edl::confusion<2>>::fit(2));
  CHECK_FALSE(edl::metrics<edl::accuracy, edl::confusion<2>>::fit(3));
}

TEST_CASE("confusion: of a head it has the head's name") {
  using of = edl::of_head<two, "a", edl::confusion<2>>;
  std::vector<float> const x{2, 1, 0, 1, 2, 0}, y{0, 1, 0, 0};
  std::vector<double> sums(of::totals);
  of::update(sums, {.channels = 3}, 2, edl::view<float>(x), edl::view<float>(y), 0);
  CHECK(edl::metrics<of>::values(sums) ==
        edl::metric_values{
            {"a/confusion/0/0", 1}, {"a/confusion/0/1", 1}, {"a/confusion/1/0", 0}, {"a/confusion/1/1", 0}});
}

TEST_CASE("confusion: a NaN is in none of the counts, nor is a place without a label") {
  std::vector<float> const x{std::numeric_limits<float>::quiet_NaN(), 1, 0, 1};
  CHECK(check::totals<edl::confusion<2>>({1, 2, 2}, 1, x, classes{0, -1}) == std::vector<double>(4, 0));
}

}  // namespace metric_confusion_test
