// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "edl/device/cpu/basic_cpu.hpp"

TEST_CASE("copies and sums, also onto an operand") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const a{1, 2, 3}, b{10, 20, 30};
  std::vector<float> y(3);
  cpu.copy(a, y);
  CHECK(y == a);
  cpu.add(edl::activation::none, a, b, y);
  CHECK(y == std::vector<float>{11, 22, 33});
  cpu.add(edl::activation::none, y, y, y);
  CHECK(y == std::vector<float>{22, 44, 66});
  std::vector<float> many(1000), sum(1000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = float(i) - 500;
  cpu.add(edl::activation::relu, many, many, sum);
  for (std::size_t i = 0; i < many.size(); ++i) CHECK(sum[i] == (i < 500 ? 0 : 2 * float(i) - 1000));
}

TEST_CASE("a masked sum is the sum where the mask is greater than zero") {
  edl::basic_cpu<float> cpu({.threads = 2});
  std::vector<float> a(40'000), x(a.size()), expected(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = float(i);
    x[i] = i % 3 ? float(i % 3) : -1;
    expected[i] = i % 3 ? 2 * float(i) : 0;
  }
  cpu.add_masked(a, a, x, a);
  CHECK(a == expected);
}

TEST_CASE("columns go into and out of a wider matrix") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const narrow{1, 2, 3, 4};
  std::vector<float> wide(6), back(4);
  cpu.copy_columns(2, 2, narrow, 0, 2, wide, 1, 3);
  CHECK(wide == std::vector<float>{0, 1, 2, 0, 3, 4});
  cpu.copy_columns(2, 2, wide, 1, 3, back, 0, 2);
  CHECK(back == narrow);
}
