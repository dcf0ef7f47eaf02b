// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/exponential.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"

namespace exponential_test {

namespace {

using edl::elementwise;

/// From -30 to 30, as single precision has them.
std::vector<float> line() {
  std::vector<float> x(20003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(-30 + 60 * double(i) / double(x.size() - 1));
  return x;
}

double sigmoid(double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

double exactly(elementwise f, double alpha, double x) {
  switch (f) {
    case elementwise::silu:
      return x * sigmoid(x);
    case elementwise::elu:
      return x > 0 ? x : alpha * std::expm1(x);
    default:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
}

double slope(elementwise f, double alpha, double x) {
  switch (f) {
    case elementwise::silu:
      return sigmoid(x) * (1 + x * sigmoid(-x));
    case elementwise::elu:
      return x > 0 ? 1 : alpha * std::exp(x);
    default:
      return sigmoid(x);
  }
}

}  // namespace

TEST_CASE("silu, elu and softplus, and their derivatives, are those of the library of C") {
  auto const x = line();
  std::vector<double> const wide(x.begin(), x.end()), ones(x.size(), 1);
  std::vector<double> wide_y(x.size()), wide_dx(x.size());
  edl::basic_cpu<double> cpu;
  for (auto const f : {elementwise::silu, elementwise::elu, elementwise::softplus})
    for (double const alpha : {1.0, 0.25}) {
      CAPTURE(int(f));
      cpu.elementwise_forward(f, alpha, wide, wide_y);
      cpu.elementwise_backward(f, alpha, edl::slope_of_x(f) ? wide : wide_y, ones, wide_dx);
      double values = 0, slopes = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        double const y = exactly(f, alpha, wide[i]);
        values = std::max(values, std::abs(wide_y[i] - y) / std::max(1e-300, std::abs(y)));
        slopes = std::max(slopes, std::abs(wide_dx[i] - slope(f, alpha, wide[i])));
      }
      CHECK(values < 1e-14);
      CHECK(slopes < 1e-14);
    }
}

TEST_CASE("single precision is within some units in the last place, wherever the threads' shares begin") {
  auto const x = line();
  std::vector<float> const ones(x.size(), 1);
  for (auto const f : {elementwise::silu, elementwise::elu, elementwise::softplus}) {
    CAPTURE(int(f));
    std::vector<float> y, dx;
    for (int const threads : {1, 3}) {
      std::vector<float> to(x.size()), back(x.size());
      edl::basic_cpu<float> cpu({.threads = threads});
      cpu.elementwise_forward(f, 0.5f, x, to);
      cpu.elementwise_backward(f, 0.5f, edl::slope_of_x(f) ? x : to, ones, back);
      if (threads == 1) y = to, dx = back;
      CHECK(y == to);
      CHECK(dx == back);
    }
    double values = 0, slopes = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const at = double(x[i]), exact = exactly(f, 0.5, at);
      values = std::max(values, std::abs(double(y[i]) - exact) / std::max(1e-30, std::abs(exact)));
      slopes = std::max(slopes, std::abs(double(dx[i]) - slope(f, 0.5, at)));
    }
    CHECK(values < 6e-7);
    CHECK(slopes < 4e-7);
  }
}

TEST_CASE("far out, at nothing, and of what is no number") {
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{-1e4f, 1e4f, nan, 0, -1e-6f, -1e30f, 1e30f, -inf, inf, nan, -1e4f};
  std::vector<float> y(x.size()), dx(x.size()), ones(x.size(), 1);
  edl::basic_cpu<float> cpu;
  for (auto const f : {elementwise::silu, elementwise::elu, elementwise::softplus}) {
    CAPTURE(int(f));
    cpu.elementwise_forward(f, 1, x, y);
    cpu.elementwise_backward(f, 1, edl::slope_of_x(f) ? x : y, ones, dx);
    float const low = f == elementwise::elu ? -1.0f : 0.0f;
    for (std::size_t const i : {0, 5, 10}) {
      CHECK(y[i] == doctest::Approx(low));
      CHECK(dx[i] == doctest::Approx(0));
    }
    for (std::size_t const i : {1, 6}) {
      CHECK(y[i] == x[i]);
      CHECK(dx[i] == 1);
    }
    for (std::size_t const i : {2, 9}) {
      CHECK(std::isnan(y[i]));
      CHECK(std::isnan(dx[i]));
    }
    CHECK(y[8] == inf);
  }
  cpu.elementwise_forward(elementwise::elu, 1, x, y);
  CHECK(y[3] == 0);
  CHECK(double(y[4]) == doctest::Approx(std::expm1(double(-1e-6f))).epsilon(1e-6));
}

TEST_CASE("log, exp(x) - 1, square root and power by lanes are those of the library of C") {
  using vector = edl::detail::eight_floats;
  auto const of = [](auto f, float x) { return f(vector{} + x)[3]; };
  auto const log = [](vector v) { return edl::detail::logarithm(v); };
  for (int i = 1; i < 20'000; ++i) {
    float const x = std::exp(float(i) * 0.004f - 40);
    REQUIRE(std::abs(of(log, x) - std::log(double(x))) < 2e-7 * (1 + std::abs(std::log(double(x)))));
    REQUIRE(of([](vector v) { return edl::detail::square_root(v); }, x) == std::sqrt(x));
    float const z = float(i) * 0.006f - 90;
    REQUIRE(of([](vector v) { return edl::detail::exponential_less_1(v); }, z) ==
            doctest::Approx(std::expm1(double(std::min(z, 88.0f)))).epsilon(1e-6));
    float const p = float(i) * 1e-3f;
    REQUIRE(of([&](vector v) { return edl::detail::power(v, vector(vector{} + 1.7f)); }, p) ==
            doctest::Approx(std::pow(double(p), 1.7)).epsilon(1e-5));
  }
  float const infinite = std::numeric_limits<float>::infinity();
  CHECK(of(log, 0) == -infinite);
  CHECK(of(log, infinite) == infinite);
  CHECK(std::isnan(of(log, -1)));
  CHECK(std::isnan(of(log, std::nanf(""))));
  CHECK(of([](vector v) { return edl::detail::power(v, vector{}); }, 0) == 1);
  CHECK(of([](vector v) { return edl::detail::power(v, vector(vector{} + 2.0f)); }, 0) == 0);
}

}  // namespace exponential_test
