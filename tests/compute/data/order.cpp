// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace order_test {

using namespace edl::data;

TEST_CASE("minibatches of a task") {
  CHECK(minibatches(0, 0, 4) == 0);
  CHECK(minibatches(5, 5, 4) == 0);
  CHECK(minibatches(5, 6, 4) == 1);
  CHECK(minibatches(0, 4, 4) == 1);
  CHECK(minibatches(0, 5, 4) == 2);
  CHECK(minibatches(0, ~0ull, 1) == ~0ull);
}

TEST_CASE("a task's order is a permutation of its records by seed, epoch and index alone") {
  std::vector<std::uint64_t> a, b, sorted;
  task_order(1, {2, 3}, 100, 612, a);
  task_order(1, {2, 3}, 100, 612, b);
  CHECK(a == b);
  sorted = a;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint64_t i = 0; i < 512; ++i) REQUIRE(sorted[std::size_t(i)] == 100 + i);
  CHECK(a != sorted);
  task_order(2, {2, 3}, 100, 612, b);
  CHECK(a != b);
  task_order(1, {3, 3}, 100, 612, b);
  CHECK(a != b);
  task_order(1, {2, 4}, 100, 612, b);
  CHECK(a != b);
  task_order(1, {2, 3}, 7, 7, b);
  CHECK(b.empty());
}

TEST_CASE("the order never changes: what another process or version computes must agree") {
  std::vector<std::uint64_t> order;
  task_order(42, {1, 2}, 10, 20, order);
  CHECK(order == std::vector<std::uint64_t>{12, 16, 19, 17, 18, 13, 11, 10, 14, 15});
}

}  // namespace order_test
