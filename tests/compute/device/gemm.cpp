// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/gemm.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "compute/device/draw.hpp"

namespace gemm_test {

namespace {

template <class T>
double error_of(std::size_t m, std::size_t n, std::size_t k, bool ta, bool tb, std::size_t extra) {
  std::size_t const as = (ta ? m : k) + extra, bs = (tb ? k : n) + extra, cs = n + extra;
  auto const a = numbers<T>((ta ? k : m) * as, 1), b = numbers<T>((tb ? n : k) * bs, 2);
  auto c = numbers<T>(m * cs, 3);
  std::vector<double> expected(c.begin(), c.end());
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t j = 0; j < n; ++j)
        expected[i * cs + j] +=
            double(ta ? a[l * as + i] : a[i * as + l]) * double(tb ? b[j * bs + l] : b[l * bs + j]);
  edl::basic_cpu<T> cpu;
  edl::multiply_add<T>(cpu, 0, m, n, k, {a.data(), as, ta}, {b.data(), bs, tb}, c.data(), cs);
  return greatest_difference(c, expected);
}

}  // namespace

TEST_CASE("products of all sizes and orders agree with three loops") {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (auto [m, n, k] : {std::array<std::size_t, 3>{1, 1, 1},
                             {3, 5, 2},
                             {64, 10, 129},
                             {17, 33, 321},
                             {65, 1000, 7},
                             {300, 41, 700}})
        for (std::size_t extra : {0, 3}) {
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          CHECK(error_of<double>(m, n, k, ta, tb, extra) < 1e-12);
          CHECK(error_of<float>(m, n, k, ta, tb, extra) < 1e-4);
        }
}

TEST_CASE("a product beyond the workspace is cut into blocks") {
  CHECK(error_of<double>(1500, 700, 90, false, false, 0) < 1e-12);
  CHECK(error_of<double>(900, 1300, 70, true, true, 0) < 1e-12);
}

TEST_CASE("an empty product leaves the result alone") {
  edl::basic_cpu<float> cpu;
  float c = 7;
  edl::multiply_add<float>(cpu, 0, 1, 1, 0, {nullptr, 0}, {nullptr, 1}, &c, 1);
  CHECK(c == 7);
}

}  // namespace gemm_test
