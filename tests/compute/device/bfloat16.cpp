// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/bfloat16.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace bfloat16_test {

TEST_CASE("numbers are rounded as core/bfloat16.hpp says, whatever their number") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (std::size_t n : {0, 1, 7, 8, 15, 16, 17, 100}) {
    auto x = numbers<float>(n, n + 1);
    if (n > 8) {
      x[1] = infinite;
      x[2] = -infinite;
      x[3] = std::numeric_limits<float>::quiet_NaN();
      x[4] = std::numeric_limits<float>::max();
      x[5] = -0.0f;
      x[6] = 1 + 0x1p-8f;  // a tie, to even
      x[7] = 1 + 3 * 0x1p-8f;
    }
    std::vector<std::uint16_t> y(n + 1, 7);
    std::vector<float> z(n + 1, 7), w(n + 1, 7);
    edl::detail::round_here(n, x.data(), y.data());
    edl::detail::round_here(n, x.data(), z.data());
    edl::detail::widen_here(n, y.data(), w.data());
    for (std::size_t i = 0; i < n; ++i) {
      float const expected = edl::from_bfloat16(edl::to_bfloat16(x[i]));
      CAPTURE(x[i]);
      CHECK((std::isnan(expected) ? std::isnan(w[i]) : w[i] == expected));
      CHECK((std::isnan(expected) ? std::isnan(z[i]) : z[i] == expected));
    }
    CHECK(y[n] == 7);  // and no further
    CHECK(z[n] == 7);
    CHECK(w[n] == 7);
  }
}

TEST_CASE("a matrix with gaps is rounded without them, to the same bits on any number of threads") {
  for (auto [rows, columns, stride] : {std::array<std::size_t, 3>{1, 1, 1},
                                       {3, 5, 9},
                                       {40, 1000, 1003},
                                       {7, 64 * 1024, 64 * 1024},
                                       {0, 5, 5},
                                       {5, 0, 3}}) {
    auto const x = numbers<float>(rows * stride + 1, 5);
    std::vector<float> expected;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < columns; ++k)
        expected.push_back(edl::from_bfloat16(edl::to_bfloat16(x[i * stride + k])));
    for (int threads : {1, 2, 5}) {
      edl::cpu cpu({.threads = threads});
      std::vector<float> y(rows * columns);
      edl::detail::round_matrix(cpu, rows, columns, x.data(), stride, y.data());
      CHECK(y == expected);
    }
  }
}

TEST_CASE("a factor is itself where a device does not round, and a copy where it does") {
  auto const x = numbers<float>(100, 3);
  edl::cpu plain, rounds({.kernels = edl::kernels::own, .precision = edl::precision::bfloat16});
  CHECK(edl::detail::factor<float>(plain, 2, x).data() == x.data());
  auto const copy = edl::detail::factor<float>(rounds, 2, x);
  CHECK(std::vector<float>(copy.begin(), copy.end()) == rounded(x));
}

}  // namespace bfloat16_test
