// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace dropout_test {

TEST_CASE("which elements stay is the stream's word, element by element") {
  edl::basic_cpu<float> cpu;
  edl::random_stream const random{0x123456789abcdefu, 0x987654321u};
  for (std::size_t n : {1, 63, 64, 1000}) {
    auto const x = numbers<float>(n, n);
    std::vector<float> y(n, 9), dx(n, 9);
    std::vector<std::byte> mask(n);
    cpu.dropout_forward(0.3f, random, x, y, mask);
    cpu.dropout_backward(0.3f, mask, x, dx);
    for (std::size_t i = 0; i < n; ++i)
      CHECK(y[i] == doctest::Approx(random.uniform(i) >= 0.3f ? x[i] / 0.7f : 0));
    CHECK(dx == y);
  }
}

TEST_CASE("the rate is respected, and nothing is dropped at rate 0") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const x(100000, 1);
  std::vector<float> y(x.size());
  std::vector<std::byte> mask(x.size());
  for (float rate : {0.1f, 0.5f, 0.9f}) {
    cpu.dropout_forward(rate, edl::random_stream{5, 6}, x, y, mask);
    double const dropped = double(std::ranges::count(y, 0.0f)) / double(x.size());
    CHECK(dropped == doctest::Approx(rate).epsilon(0.02));
  }
  cpu.dropout_forward(0, edl::random_stream{5, 6}, x, y, mask);
  CHECK(y == x);
}

TEST_CASE("the same elements stay where samples are bfloat16") {
  std::size_t const n = 50'000;
  edl::random_stream const random{5, 6};
  auto const x = rounded(numbers<float>(n, 1));
  std::vector<float> y(n), dx(n);
  std::vector<std::byte> mask(n);
  edl::basic_cpu<float>().dropout_forward(0.3f, random, x, y, mask);
  edl::basic_cpu<float>().dropout_backward(0.3f, mask, x, dx);
  for (int const threads : {1, 3})
    for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}}) {
      edl::basic_cpu<float> cpu({.threads = threads});
      std::vector<float> found(edl::scalars_of(n, sides.out), 9), back(edl::scalars_of(n, sides.in), 9);
      std::vector<std::byte> kept(n);
      cpu.dropout_forward(0.3f, random, as_narrow(x, sides.in), found, kept, sides);
      CHECK(kept == mask);
      CHECK(as_wide(found, n, sides.out) == (sides.out ? rounded(y) : y));
      cpu.dropout_backward(0.3f, kept, as_narrow(x, sides.out), back, sides);
      CHECK(as_wide(back, n, sides.in) == (sides.in ? rounded(dx) : dx));
    }
}

}  // namespace dropout_test
