// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/vector_functions.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

namespace vector_functions_test {

namespace {

using vector = edl::detail::lanes<float>::type;

/// f of eight equal lanes.
template <class F>
float in_lanes(F&& f, float x) {
  vector const y = f(vector{} + x);
  for (std::size_t i = 1; i < edl::detail::lanes<float>::count; ++i) REQUIRE(y[i] == y[0]);
  return y[0];
}

}  // namespace

TEST_CASE("exponentials in lanes are close to the library's") {
  auto const f = [](vector x) { return edl::detail::exponential(x); };
  for (float x = -87; x < 88; x += 0.0137f) {
    double const wanted = std::exp(double(x));
    REQUIRE(std::abs(double(in_lanes(f, x)) - wanted) <= 2e-7 * wanted);
  }
  CHECK(in_lanes(f, -1e30f) < 1e-37f);
  CHECK(in_lanes(f, 1e30f) > 1e38f);
  CHECK(std::isfinite(in_lanes(f, 1e30f)));
}

TEST_CASE("tangents and logistic functions in lanes are close to the library's, also near 0") {
  auto const t = [](vector x) { return edl::detail::hyperbolic_tangent(x); };
  auto const l = [](vector x) { return edl::detail::logistic(x); };
  for (float x = -20; x < 20; x += 0.0037f) {
    double const wanted = std::tanh(double(x));
    REQUIRE(std::abs(double(in_lanes(t, x)) - wanted) <= 3e-7 * std::abs(wanted) + 1e-12);
    REQUIRE(std::abs(double(in_lanes(l, x)) - 1 / (1 + std::exp(-double(x)))) <= 2e-7);
  }
  CHECK(in_lanes(t, 1e-6f) == doctest::Approx(1e-6).epsilon(1e-6));
  CHECK(in_lanes(t, 1e6f) == 1);
  CHECK(in_lanes(t, -1e6f) == -1);
  CHECK(in_lanes(l, -1e6f) >= 0);
}

TEST_CASE("sums by lanes have all elements in them") {
  std::array<double, 23> numbers{};
  for (std::size_t n = 0; n <= numbers.size(); ++n) {
    for (std::size_t i = 0; i < n; ++i) numbers[i] = double(i + 1);
    CHECK(edl::detail::sum_by_lanes<double>(n, [&]<class V>(std::size_t i) {
            return V(edl::detail::load<V>(numbers.data() + i));
          }) == double(n * (n + 1) / 2));
  }
}

}  // namespace vector_functions_test
