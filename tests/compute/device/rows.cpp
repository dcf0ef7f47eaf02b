// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"

namespace rows_test {

TEST_CASE("rows are summed in parts: a hundred thousand tenths are ten thousand") {
  edl::basic_cpu<float> cpu;
  std::vector<float> x(100000, 0.1f), sum(1);
  sum_rows(cpu, x.size(), 1, x, sum);
  CHECK(std::abs(sum[0] - 10000) < 0.05f);
}

TEST_CASE("more columns than fit into one part") {
  edl::basic_cpu<double> cpu;
  std::size_t const rows = 130, columns = 2500;
  auto const x = numbers<double>(rows * columns, 5);
  std::vector<double> sum(columns, 9), expected(columns);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i % columns] += x[i];
  sum_rows(cpu, rows, columns, x, sum);
  CHECK(greatest_difference(sum, expected) < 1e-12);
}

TEST_CASE("rows are filled, with zeros if there is nothing to fill them with") {
  edl::basic_cpu<float> cpu;
  std::vector<float> y(6, 9), row{1, 2, 3};
  fill_rows(cpu, 2, 3, row, y);
  CHECK(y == std::vector<float>{1, 2, 3, 1, 2, 3});
  fill_rows(cpu, 2, 3, {}, y);
  CHECK(std::ranges::count(y, 0.0f) == 6);
}

}  // namespace rows_test
