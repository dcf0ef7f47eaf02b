// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace elementwise_test {

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

TEST_CASE("products of elements, also onto an operand, on several threads") {
  edl::basic_cpu<float> cpu({.threads = 2});
  std::size_t const n = 40'003;
  auto const a = numbers<float>(n, 1), b = numbers<float>(n, 2);
  std::vector<float> expected(n), y(n);
  for (std::size_t i = 0; i < n; ++i) expected[i] = a[i] * b[i];
  cpu.multiply_elements(a, b, y);
  CHECK(y == expected);
  y = a;
  cpu.multiply_elements(y, b, y);
  CHECK(y == expected);
  y = b;
  cpu.multiply_elements(a, y, y);
  CHECK(y == expected);
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

TEST_CASE("operands of sums may be bfloat16") {
  // Several parts on each thread, and as many numbers as a processor may have own loops for, or more.
  for (std::size_t const n : {50'000u, 50'016u}) {
    auto const a = rounded(numbers<float>(n, 1)), b = rounded(numbers<float>(n, 2)),
               x = rounded(numbers<float>(n, 3));
    for (int const threads : {1, 3})
      for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}}) {
        edl::basic_cpu<float> cpu({.threads = threads});
        std::vector<float> sum(n), masked(n);
        cpu.add(edl::activation::relu, a, b, sum);
        cpu.add_masked(a, b, x, masked);
        auto const first = as_narrow(a, sides.out), second = as_narrow(b, sides.in),
                   mask = as_narrow(x, sides.out);
        auto const check = [&](std::vector<float> const& found, std::vector<float> const& expected) {
          CHECK(as_wide(found, n, sides.out) == (sides.out ? rounded(expected) : expected));
        };
        auto y = first;
        cpu.add(edl::activation::relu, y, second, y, sides);
        check(y, sum);
        y = first;
        cpu.add_masked(y, second, mask, y, sides);
        check(y, masked);
      }
  }
}

TEST_CASE("a copy rounds and widens where only one side is bfloat16") {
  std::size_t const n = 50'000;
  auto const x = numbers<float>(n, 1);
  edl::basic_cpu<float> cpu({.threads = 3});
  std::vector<float> wide(n), half(n / 2), again(n / 2);
  cpu.copy(x, half, {.out = true});
  CHECK(half == as_narrow(x));
  cpu.copy(half, wide, {.in = true});
  CHECK(wide == rounded(x));
  cpu.copy(half, again, {true, true});
  CHECK(again == half);
}

}  // namespace elementwise_test
