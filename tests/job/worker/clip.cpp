// SPDX-License-Identifier: Apache-2.0
#include "edl/job/worker/clip.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace clip_test {

using edl::worker::clip;

namespace {

double norm(std::vector<std::vector<float>> const& of) {
  double s = 0;
  for (auto const& part : of)
    for (float const g : part) s += double(g) * double(g);
  return std::sqrt(s);
}

void apply(edl::worker::clipping const& how, std::vector<std::vector<float>>& of) {
  std::vector<std::span<float>> parts(of.begin(), of.end());
  clip(how, parts);
}

}  // namespace

TEST_CASE("the norm of all parts together is bounded, and the direction stays") {
  std::vector<std::vector<float>> g{std::vector<float>(37, 0.3f), {-4, 5}};
  auto const before = g;
  double const was = norm(g);
  apply({.norm = 2}, g);
  CHECK(norm(g) == doctest::Approx(2).epsilon(1e-6));
  for (std::size_t p = 0; p < g.size(); ++p)
    for (std::size_t i = 0; i < g[p].size(); ++i) CHECK(g[p][i] == doctest::Approx(before[p][i] * 2 / was));
}

TEST_CASE("a gradient within the bounds stays as it is, to the bit") {
  std::vector<std::vector<float>> g{{0.1f, -0.2f, 0.3f}};
  auto const before = g;
  apply({.value = 0.3f, .norm = 10}, g);
  CHECK(g == before);
  apply({}, g);
  CHECK(g == before);
}

TEST_CASE("elements are cut before the norm is taken") {
  std::vector<std::vector<float>> g{{100, -100, 1}};
  apply({.value = 1}, g);
  CHECK(g == std::vector<std::vector<float>>{{1, -1, 1}});
  g = {{100, -100, 0}};
  apply({.value = 3, .norm = 3}, g);
  CHECK(g[0][0] == doctest::Approx(3 / std::sqrt(2)));
}

TEST_CASE("what is not finite is not made finite by its norm") {
  std::vector<std::vector<float>> g{{std::numeric_limits<float>::infinity(), 1}, {}};
  apply({.norm = 1}, g);
  CHECK(std::isinf(g[0][0]));
  CHECK(g[0][1] == 1);
  apply({.value = 0.5f, .norm = 1}, g);
  CHECK(std::isinf(g[0][0]));
}

}  // namespace clip_test
