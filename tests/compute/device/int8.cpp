// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/int8.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/int8_passes.hpp"
#include "edl/compute/device/exact_products.hpp"

namespace int8_test {

namespace {

std::vector<edl::kernels> computing() {
  if (edl::multiplies(edl::precision::int8)) return {edl::kernels::own, edl::kernels::fixed};
  MESSAGE("left out: this processor, or this build, has no products of int8");
  return {edl::kernels::own};
}

edl::cpu quantising(edl::kernels k, int threads = 1) {
  return edl::cpu({.threads = threads, .kernels = k, .precision = edl::precision::int8});
}

constexpr edl::conv_geometry geometries[]{
    {{7, 6, 3}, {7, 6, 4}, 3, 1, 1, 1},     {{9, 5, 4}, {3, 2, 6}, {3, 2}, {3, 2}, 0, 2},
    {{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6},     {{8, 8, 32}, {8, 8, 48}, 3, 1, 1, 1},
    {{9, 40, 16}, {5, 20, 33}, 3, 2, 1, 1}, {{6, 6, 5}, {3, 3, 7}, 1, 2, 0, 1},
    {{6, 7, 70}, {6, 7, 16}, 1, 1, 0, 1},   {{1, 1, 130}, {1, 1, 49}, 1, 1, 0, 1}};

/// Whole numbers of a row or column, and their scale, by the definition.
struct by_definition {
  std::vector<double> whole;
  double scale = 1;

  explicit by_definition(std::vector<float> const& x) {
    double most = 0;
    for (float v : x) most = std::max(most, std::fabs(double(v)));
    if (most > 0) scale = double(float(most) / 127.0f);
    for (float v : x) whole.push_back(std::nearbyint(double(v * (1 / float(scale)))));
  }
};

}  // namespace

TEST_CASE("a dense layer of quantised factors is the product of whole numbers times both scales") {
  struct {
    std::size_t rows, inputs, outputs;
  } const cases[] = {{1, 1, 1}, {5, 7, 3}, {64, 100, 10}, {33, 300, 65}, {17, 64, 300}};
  for (auto const k : computing())
    for (auto const [rows, inputs, outputs] : cases)
      for (int threads : {1, 3}) {
        CAPTURE(rows);
        CAPTURE(int(k));
        auto const x = numbers<float>(rows * inputs, 1), w = numbers<float>(inputs * outputs, 2),
                   bias = numbers<float>(outputs, 3);
        std::vector<by_definition> in, out;
        for (std::size_t r = 0; r < rows; ++r)
          in.emplace_back(std::vector<float>(x.begin() + std::ptrdiff_t(r * inputs),
                                             x.begin() + std::ptrdiff_t((r + 1) * inputs)));
        for (std::size_t o = 0; o < outputs; ++o) {
          std::vector<float> column;
          for (std::size_t i = 0; i < inputs; ++i) column.push_back(w[i * outputs + o]);
          out.emplace_back(column);
        }
        std::vector<double> expected;
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t o = 0; o < outputs; ++o) {
            double sum = 0;
            for (std::size_t i = 0; i < inputs; ++i) sum += in[r].whole[i] * out[o].whole[i];
            expected.push_back(sum * in[r].scale * out[o].scale + double(bias[o]));
          }
        auto cpu = quantising(k, threads);
        std::vector<float> y(expected.size(), 9);
        cpu.dense_forward(rows, inputs, outputs, edl::activation::none, x, w, bias, y);
        CHECK(greatest_difference(y, expected) < 1e-4);
        for (double& e : expected) e = std::max(e, 0.0);
        cpu.dense_forward(rows, inputs, outputs, edl::activation::relu, x, w, bias, y);
        CHECK(greatest_difference(y, expected) < 1e-4);
      }
}

TEST_CASE("sums of more products than a whole number holds are of float32, and never wrap") {
  for (auto const k : computing())
    for (std::size_t const inputs : {edl::detail::most_int8_terms, 2 * edl::detail::most_int8_terms}) {
      std::vector<float> const x(inputs, 1), w(inputs, -1);
      std::vector<float> y(1);
      auto cpu = quantising(k);
      cpu.dense_forward(1, inputs, 1, edl::activation::none, x, w, {}, y);
      CHECK(y[0] == doctest::Approx(-double(inputs)));
      cpu.conv2d_forward(edl::detail::dense_geometry(inputs, 1), 1, edl::activation::none, x, w, {}, y);
      CHECK(y[0] == doctest::Approx(-double(inputs)));
      CHECK((cpu.describe_dense(1, inputs, 1) == edl::detail::describe_int8()) ==
            (inputs == edl::detail::most_int8_terms));
    }
}

TEST_CASE("a convolution of quantised factors is the sum of whole numbers times both scales") {
  for (auto const& g : geometries) {
    CAPTURE(g.in.channels);
    int const batch = 5;
    auto const x = numbers<float>(batch * g.in.size(), 1),
               w = numbers<float>(g.patch() * std::size_t(g.out.channels), 2),
               bias = numbers<float>(std::size_t(g.out.channels), 3);
    // Whole numbers below 2^24 have no error in float32.
    std::vector<float> whole_x, whole_w(w.size()), sums(batch * g.out.size());
    std::vector<by_definition> in, out;
    for (std::size_t i = 0; i < batch; ++i) {
      auto const first = x.begin() + std::ptrdiff_t(i * g.in.size());
      in.emplace_back(std::vector<float>(first, first + std::ptrdiff_t(g.in.size())));
      whole_x.insert(whole_x.end(), in.back().whole.begin(), in.back().whole.end());
    }
    auto const filters = std::size_t(g.out.channels);
    for (std::size_t o = 0; o < filters; ++o) {
      std::vector<float> column;
      for (std::size_t k = 0; k < g.patch(); ++k) column.push_back(w[k * filters + o]);
      out.emplace_back(column);
      for (std::size_t k = 0; k < g.patch(); ++k) whole_w[k * filters + o] = float(out.back().whole[k]);
    }
    edl::cpu({.kernels = edl::kernels::own})
        .conv2d_forward(g, batch, edl::activation::none, whole_x, whole_w, {}, sums);
    std::vector<double> expected;
    for (std::size_t i = 0; i < sums.size(); ++i)
      expected.push_back(double(sums[i]) * in[i / g.out.size()].scale * out[i % filters].scale +
                         double(bias[i % filters]));
    for (int const threads : {1, 3, 8}) {
      std::vector<float> y(sums.size(), 9);
      quantising(edl::kernels::own, threads).conv2d_forward(g, batch, edl::activation::none, x, w, bias, y);
      CHECK(greatest_difference(y, expected) < 1e-4);
    }
  }
}

TEST_CASE("all units of a processor, and any number of threads, give the same bits") {
  for (auto const& g : geometries)
    for (int const batch : {1, 2, 5, 40})
      for (auto const f : {edl::activation::none, edl::activation::relu}) {
        CAPTURE(g.in.channels);
        CAPTURE(batch);
        auto const x = numbers<float>(std::size_t(batch) * g.in.size(), 1),
                   w = numbers<float>(g.patch() * std::size_t(g.out.channels), 2),
                   bias = numbers<float>(std::size_t(g.out.channels), 3);
        auto const by = [&]<class Unit>(Unit, int threads) {
          auto cpu = quantising(edl::kernels::own, threads);
          std::vector<float> y(std::size_t(batch) * g.out.size(), 9);
          edl::detail::int8_forward_by<Unit>(cpu, g, batch, f, x, w,
                                             batch % 2 ? edl::view<float>(bias) : edl::view<float>(), y);
          return y;
        };
        auto const plain = by(edl::detail::int8_plain{}, 1);
        edl::detail::by_int8_unit([&](auto unit) {
          CHECK(by(unit, 1) == plain);
          CHECK(by(unit, 3) == plain);
        });
#ifdef __x86_64__
        if (edl::detail::int8_vectors::here()) CHECK(by(edl::detail::int8_vectors{}, 2) == plain);
#endif
      }
}

TEST_CASE("sums have no error, where float32's would") {
  constexpr std::size_t inputs = 9000, outputs = 17;  // 127 * 127 * 9000 is more than 2^24
  std::vector<float> x(3 * inputs, 1), w(inputs * outputs, -1), y(3 * outputs);
  w[16] = 0;  // of the last output
  x[0] = 0;
  quantising(edl::kernels::own).dense_forward(3, inputs, outputs, edl::activation::none, x, w, {}, y);
  float const scale = 1 / 127.0f, both = scale * scale;
  auto const times = [&](int n) { return float(-127 * 127 * n) * both; };
  CHECK(y[outputs] == times(inputs));
  CHECK(y[0] == times(inputs - 1));
  CHECK(y[outputs - 1] == times(inputs - 1));
  CHECK(y[2 * outputs - 1] == times(inputs - 1));
}

TEST_CASE("the result for a sample does not depend on the others of its minibatch") {
  edl::conv_geometry const g{{6, 6, 16}, {6, 6, 16}, 3, 1, 1, 1};
  auto x = numbers<float>(3 * g.in.size(), 1);
  auto const w = numbers<float>(g.patch() * 16, 2);
  for (std::size_t i = 0; i < g.in.size(); ++i) x[i] *= 1000;  // of the first sample alone
  for (auto const k : computing()) {
    auto cpu = quantising(k);
    std::vector<float> all(3 * g.out.size()), last(g.out.size());
    cpu.conv2d_forward(g, 3, edl::activation::none, x, w, {}, all);
    cpu.conv2d_forward(g, 1, edl::activation::none, edl::view<float>(x).subspan(2 * g.in.size()), w, {},
                       last);
    CHECK(std::equal(last.begin(), last.end(), all.end() - std::ptrdiff_t(last.size())));
  }
}

TEST_CASE("quantised kernels are kept from when they are written until they are written again") {
  edl::conv_geometry const g{{6, 6, 8}, {6, 6, 8}, 3, 1, 1, 1};
  auto const x = numbers<float>(4 * g.in.size(), 1), other = numbers<float>(g.patch() * 8, 3);
  for (auto const k : computing()) {
    auto cpu = quantising(k, 2), anew = quantising(k, 2);
    auto w = numbers<float>(g.patch() * 8, 2);
    auto const by = [&](edl::cpu& on) {
      std::vector<float> y(4 * g.out.size() + 4 * 16);
      auto const [first, second] = std::pair(std::span(y).first(4 * g.out.size()), std::span(y).last(4 * 16));
      on.conv2d_forward(g, 4, edl::activation::none, x, w, {}, first);
      // The same memory as another layer's kernel.
      on.dense_forward(4, g.patch() / 2, 16, edl::activation::none, edl::view<float>(x).first(2 * g.patch()),
                       w, {}, second);
      return y;
    };
    cpu.kernels_written();
    auto const before = by(cpu);
    CHECK(before == by(anew));
    w.assign(other.begin(), other.end());  // where the others were
    CHECK(by(cpu) == before);              // nobody has said so
    CHECK(by(anew) != before);
    cpu.kernels_written();
    CHECK(by(cpu) == by(anew));
  }
}

TEST_CASE("zeros stay zeros, and what is not finite gives no numbers") {
  for (auto const k : computing()) {
    auto cpu = quantising(k);
    std::vector<float> x(4 * 32, 0.0f), y(4 * 3), bias{1, 2, 3};
    auto const w = numbers<float>(32 * 3, 1);
    x[32] = std::numeric_limits<float>::quiet_NaN();
    x[64] = std::numeric_limits<float>::infinity();
    x[96] = 1;
    cpu.dense_forward(4, 32, 3, edl::activation::none, x, w, bias, y);
    CHECK(std::vector<float>(y.begin(), y.begin() + 3) == bias);
    for (std::size_t i = 3; i < 9; ++i) CHECK_FALSE(std::isfinite(y[i]));
    for (std::size_t i = 9; i < 12; ++i) CHECK(std::isfinite(y[i]));
  }
}

TEST_CASE("products are exact where they are asked to be, also within another such place") {
  auto const x = numbers<float>(4 * 32, 1), w = numbers<float>(32 * 8, 2);
  std::vector<float> exact(4 * 8), y(4 * 8);
  edl::cpu({.kernels = edl::kernels::own}).dense_forward(4, 32, 8, edl::activation::none, x, w, {}, exact);
  auto cpu = quantising(edl::kernels::own);
  {
    edl::exact_products const outer(cpu, true);
    {
      edl::exact_products const inner(cpu, true), idle(cpu, false);
    }
    cpu.dense_forward(4, 32, 8, edl::activation::none, x, w, {}, y);
    CHECK(y == exact);
  }
  cpu.dense_forward(4, 32, 8, edl::activation::none, x, w, {}, y);
  CHECK(y != exact);
}

}  // namespace int8_test
