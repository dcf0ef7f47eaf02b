// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace matrices_test {

TEST_CASE("products of matrices are those of plain loops, with the same bits for any number of threads") {
  edl::cpu one({.threads = 1}), three({.threads = 3});
  for (auto const& [m, k, n] : {std::array<std::size_t, 3>{1, 1, 1}, {3, 5, 2}, {65, 7, 33}, {130, 64, 1}})
    for (int const turned : {0, 1, 2, 3}) {
      edl::product_geometry const g{3, m, k, n, turned % 2 == 1, turned / 2 == 1};
      auto const a = numbers<float>(3 * m * k, 1), b = numbers<float>(3 * k * n, 2);
      std::vector<float> y(3 * m * n), again(y.size());
      one.multiply_matrices(g, a, b, y);
      three.multiply_matrices(g, a, b, again);
      CHECK(y == again);
      double most = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        std::size_t const p = i / (m * n), row = i / n % m, column = i % n;
        double sum = 0;
        for (std::size_t j = 0; j < k; ++j)
          sum += double(a[p * m * k + (g.turned_left ? j * m + row : row * k + j)]) *
                 double(b[p * k * n + (g.turned_right ? column * k + j : j * n + column)]);
        most = std::max(most, std::abs(sum - double(y[i])));
      }
      CHECK(most < 1e-5);
    }
}

TEST_CASE("matrices are turned") {
  edl::basic_cpu<double> cpu({.threads = 2});
  for (auto const& [rows, columns] : {std::array<std::size_t, 2>{1, 5}, {17, 1}, {33, 50}, {200, 300}}) {
    auto const x = numbers<double>(3 * rows * columns, 1);
    std::vector<double> y(x.size()), expected(x.size());
    cpu.transpose(3, rows, columns, x, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::size_t const p = i / (rows * columns), row = i / columns % rows, column = i % columns;
      expected[p * rows * columns + column * rows + row] = x[i];
    }
    CHECK(y == expected);
  }
}

}  // namespace matrices_test
