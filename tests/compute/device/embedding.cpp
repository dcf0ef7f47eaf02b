// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/core/error.hpp"

namespace embedding_test {

TEST_CASE("rows that ids name, and the sums of their gradients") {
  edl::basic_cpu<float> cpu;
  edl::embedding_geometry const g{.vocabulary = 4, .width = 2, .ids = 3};
  std::vector<float> const table{0, 1, 10, 11, 20, 21, 30, 31}, ids{3, 0, 3, 1, 3, 0},
      dy{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> y(12), dx(6, 9), dtable(8, 9);
  cpu.embedding_forward(g, 2, ids, table, y);
  CHECK(y == std::vector<float>{30, 31, 0, 1, 30, 31, 10, 11, 30, 31, 0, 1});
  cpu.embedding_backward(g, 2, ids, dy, dx, dtable);
  CHECK(dtable == std::vector<float>{14, 16, 7, 8, 0, 0, 15, 18});
  CHECK(dx == std::vector<float>(6));
  std::vector<float> again(8, 9);
  cpu.embedding_backward(g, 2, ids, dy, {}, again);
  CHECK(again == dtable);
}

TEST_CASE("what is no id is an error that names it, and nothing is read or written for it") {
  edl::basic_cpu<double> cpu;
  edl::embedding_geometry const g{.vocabulary = 4, .width = 1, .ids = 2};
  double const none = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  std::vector<double> const table{1, 2, 3, 4}, dy{1, 2, 4, 8};
  for (double const bad : {-1.0, 4.0, 2.5, 1e300, -0.5, none, far, -far}) {
    CAPTURE(bad);
    std::vector<double> const ids{3, 0, 0, bad};
    std::vector<double> y(4, -7), dtable(4, 9);
    CHECK_THROWS_WITH_AS(cpu.embedding_forward(g, 2, ids, table, y),
                         doctest::Contains("(number 1 of sample 1) is not an id of a vocabulary of 4"),
                         edl::error);
    CHECK(y == std::vector<double>(4, -7));
    cpu.embedding_backward(g, 2, ids, dy, {}, dtable);
    CHECK(dtable == std::vector<double>{6, 0, 0, 1});
  }
  std::vector<double> y(2);
  CHECK_THROWS_WITH_AS(cpu.embedding_forward(g, 1, std::vector<double>{2.5, 0}, table, y),
                       doctest::Contains("2.5 (number 0 of sample 0)"), edl::error);
}

TEST_CASE("sums have the order of the batch, whatever the number of threads") {
  edl::embedding_geometry const g{.vocabulary = 37, .width = 24, .ids = 50};
  int const batch = 64;
  std::size_t const n = 50 * 64, width = 24;
  auto ids = numbers<float>(n, 1);
  for (float& id : ids) id = std::floor(37 * (0.5f + 0.499f * id) * (0.5f + 0.499f * id));
  auto const table = numbers<float>(37 * width, 2), dy = numbers<float>(n * width, 3);
  std::vector<float> wanted(37 * width), shown(n * width);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < width; ++k) {
      wanted[std::size_t(ids[i]) * width + k] += dy[i * width + k];
      shown[i * width + k] = table[std::size_t(ids[i]) * width + k];
    }
  for (int const threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    edl::basic_cpu<float> cpu({.threads = threads});
    std::vector<float> y(n * width), dtable(37 * width, 9);
    cpu.embedding_forward(g, batch, ids, table, y);
    CHECK(y == shown);
    cpu.embedding_backward(g, batch, ids, dy, {}, dtable);
    CHECK(dtable == wanted);
  }
}

}  // namespace embedding_test
