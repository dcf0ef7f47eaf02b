// SPDX-License-Identifier: Apache-2.0
// Covers also edl/compute/device/cpu/onednn/onednn_types.hpp.
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

TEST_CASE("a convolution of quantised factors is near that of float32, and the library's is edl's own") {
  for (auto const& g : {edl::conv_geometry{{7, 6, 3}, {7, 6, 4}, 3, 1, 1, 1},
                        edl::conv_geometry{{9, 5, 4}, {3, 2, 6}, {3, 2}, {3, 2}, 0, 2},
                        edl::conv_geometry{{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6},
                        edl::conv_geometry{{8, 8, 32}, {8, 8, 48}, 3, 1, 1, 1},
                        edl::conv_geometry{{6, 6, 5}, {3, 3, 7}, 1, 2, 0, 1}}) {
    CAPTURE(g.in.channels);
    auto const x = numbers<float>(5 * g.in.size(), 1),
               w = numbers<float>(g.patch() * std::size_t(g.out.channels), 2),
               bias = numbers<float>(std::size_t(g.out.channels), 3);
    std::vector<float> exact(5 * g.out.size()), own(exact.size());
    edl::cpu({.kernels = edl::kernels::own}).conv2d_forward(g, 5, edl::activation::none, x, w, bias, exact);
    for (auto const k : computing()) {
      std::vector<float> y(exact.size(), 9);
      quantising(k, 2).conv2d_forward(g, 5, edl::activation::none, x, w, bias, y);
      CHECK(greatest_difference(y, exact) > 0);
      CHECK(greatest_difference(y, exact) < 0.015 * std::sqrt(double(g.patch())));
      if (k == edl::kernels::own)
        own = y;
      else
        CHECK(greatest_difference(y, own) < 1e-4);  // whole numbers below 2^24 have no error in float32
    }
  }
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
    { edl::exact_products const inner(cpu, true), idle(cpu, false); }
    cpu.dense_forward(4, 32, 8, edl::activation::none, x, w, {}, y);
    CHECK(y == exact);
  }
  cpu.dense_forward(4, 32, 8, edl::activation::none, x, w, {}, y);
  CHECK(y != exact);
}

}  // namespace int8_test
