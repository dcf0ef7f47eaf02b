// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/convolution/tiled_conv2d.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "compute/device/narrow_convolution.hpp"
#include "edl/compute/device/cpu/convolution/tiled_passes.hpp"
#include "edl/compute/device/cpu/tile_unit.hpp"
#include "edl/compute/device/cpu/tiled_gemm.hpp"

namespace tiled_conv2d_test {

using namespace narrow_convolution;

namespace {

namespace tiled = edl::detail::tiled;
using tiled::half;

/// What the instructions do, number by number, on any processor.
struct emulated_unit {
  struct session {
    session() {}
  };

  template <int Left, int Right>
  static void multiply(tiled::tile_product const& p) {
    for (int l = 0; l < Left; ++l)
      for (int r = 0; r < Right; ++r)
        for (std::size_t i = 0; i < tiled::rows; ++i)
          for (std::size_t j = 0; j < tiled::rows; ++j) {
            float& sum = p.sums[(std::size_t(l) * 16 + i) * p.stride + std::size_t(r) * 16 + j];
            if (!p.add) sum = 0;
            for (auto const& run : p.runs)
              for (std::size_t s = 0; s < run.steps; ++s)
                for (std::size_t k = 0; k < tiled::depth; ++k)
                  sum += edl::from_bfloat16(
                             run.left[s * p.left_step + std::size_t(l) * p.left_second + i * 32 + k]) *
                         edl::from_bfloat16(run.right[s * p.right_step + std::size_t(r) * p.right_second +
                                                      k / 2 * 32 + j * 2 + k % 2]);
          }
  }
  static void pair_rows(half const* from, std::size_t stride, half* to, std::size_t second) {
    for (std::size_t i = 0; i < 32; ++i)
      for (std::size_t j = 0; j < 32; ++j)
        to[(j / 16) * second + i / 2 * 32 + j % 16 * 2 + i % 2] = from[i * stride + j];
  }
  static void turn_pairs(half const* from, std::size_t stride, half* to) {
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 32; ++j) to[j / 2 * 32 + 2 * i + j % 2] = from[i * stride + j];
  }
  static void finish(float const* sums, std::size_t of_sums, std::size_t count, std::size_t columns,
                     float const* bias, bool relu, half* y, std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        float const z = sums[i * of_sums + j] + (bias ? bias[j] : 0);
        y[i * stride + j] = edl::to_bfloat16(relu && z < 0 ? 0 : z);
      }
  }
};

template <class Unit>
results computed(problem const& p, int threads, edl::activation f = edl::activation::none, bool bias = true) {
  edl::cpu cpu({.threads = threads});
  auto const x = as_narrow(p.x), dy = as_narrow(p.dy);
  std::vector<float> y(dy.size(), 1e9f), dx(x.size(), 1e9f);
  results r{{}, {}, std::vector<float>(p.w.size(), 1e9f), std::vector<float>(bias ? p.bias.size() : 0, 1e9f)};
  tiled::map_with<Unit>(cpu, p.g, false, p.batch, f, tiled::halves(x.data()), p.w,
                        bias ? edl::view<float>(p.bias) : edl::view<float>(), tiled::halves(y.data()));
  tiled::map_with<Unit>(cpu, p.g, true, p.batch, edl::activation::none, tiled::halves(dy.data()), p.w, {},
                        tiled::halves(dx.data()));
  tiled::sum_kernel<Unit>(cpu, p.g, p.batch, tiled::halves(x.data()), tiled::halves(dy.data()), r.dw, r.db);
  r.y = as_wide(y, p.y.size()), r.dx = as_wide(dx, p.dx.size());
  return r;
}

// Factors are bfloat16 already. Samples of results are rounded to it.
constexpr double rounding = 2.3e-3, of_sums = 1e-5;

template <class Unit>
void compare(edl::conv_geometry const& g, int batch, int threads) {
  problem const p(g, batch);
  REQUIRE(tiled::can_map(p.g));
  CAPTURE(g.in.height);
  CAPTURE(g.in.channels);
  CAPTURE(g.out.channels);
  CAPTURE(batch);
  CAPTURE(threads);
  auto const r = computed<Unit>(p, threads);
  CHECK(error_of(r.y, p.y) < rounding);
  CHECK(error_of(r.dx, p.dx) < rounding);
  CHECK(error_of(r.dw, p.dw) < of_sums);
  CHECK(error_of(r.db, p.db) < of_sums);
}

/// work.operator()<Unit>() for the double, and for the processor's own where it has one.
template <class Work>
void with_units(Work&& work) {
  work.template operator()<emulated_unit>();
#ifdef __x86_64__
  if (tiled::has_unit()) return work.template operator()<tiled::unit>();
#endif
  MESSAGE("by emulation alone: this processor has no matrix unit, or the system does not lend it");
}

/// a · b by the definition, of numbers rounded to bfloat16; a and b may have been stored turned.
std::vector<double> product(std::size_t m, std::size_t n, std::size_t k, std::vector<float> const& a,
                            bool a_turned, std::vector<float> const& b, bool b_turned) {
  std::vector<double> c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < k; ++l)
        c[i * n + j] +=
            double(a[a_turned ? l * m + i : i * k + l]) * double(b[b_turned ? j * k + l : l * n + j]);
  return c;
}

}  // namespace

TEST_CASE("convolutions by tiles agree with the definition, whatever the kernel, its stride and border") {
  with_units([]<class Unit> {
    for (int threads : {1, 3}) {
      compare<Unit>({{5, 4, 16}, {5, 4, 48}, 3, 1, 1, 1}, 3, threads);
      compare<Unit>({{6, 5, 32}, {3, 3, 32}, 3, 2, 0, 1}, 5, threads);  // reaches beyond after the map alone
      compare<Unit>({{7, 6, 16}, {4, 3, 32}, 1, 2, 0, 1}, 37, threads);
      compare<Unit>({{9, 8, 16}, {3, 3, 16}, 5, 3, 2, 1}, 18, threads);
      compare<Unit>({{3, 2, 48}, {3, 2, 80}, 3, 1, 1, 1}, 17, threads);  // a kernel larger than its samples
      compare<Unit>({{1, 1, 16}, {1, 1, 16}, 3, 1, 1, 1}, 70, threads);  // taps that meet nothing
      compare<Unit>({{4, 5, 16}, {6, 7, 16}, {3, 3}, 1, 2, 1}, 2, threads);
      compare<Unit>({{1, 2, 48}, {1, 2, 528}, 1, 1, 0, 1}, 3, threads);  // rows of weights go in parts
    }
  });
}

TEST_CASE("rows of large maps are kept from band to band") {
  with_units([]<class Unit> {
    compare<Unit>({{40, 24, 16}, {40, 24, 16}, 3, 1, 1, 1}, 1, 2);
    compare<Unit>({{48, 32, 16}, {24, 16, 16}, 3, 2, 1, 1}, 1, 1);
  });
}

TEST_CASE("a tiled convolution has its bias and relu, and a bias may be missing") {
  with_units([]<class Unit> {
    problem p({{4, 3, 16}, {4, 3, 48}, 3, 1, 1, 1}, 5);
    auto const plain = computed<Unit>(p, 2), positive = computed<Unit>(p, 2, edl::activation::relu),
               without = computed<Unit>(p, 2, edl::activation::none, false);
    for (std::size_t i = 0; i < p.y.size(); ++i) {
      CHECK(positive.y[i] == std::max(plain.y[i], 0.0f));
      p.y[i] -= double(p.bias[i % p.bias.size()]);
    }
    CHECK(error_of(without.y, p.y) < rounding);
    CHECK(without.dw == plain.dw);
  });
}

TEST_CASE("tiles give samples the same bits for any number of threads, kernels' gradients for equal ones") {
  with_units([]<class Unit> {
    problem const p({{9, 8, 16}, {9, 8, 32}, 3, 1, 1, 1}, 35);
    auto const one = computed<Unit>(p, 1), three = computed<Unit>(p, 3);
    CHECK(one.y == three.y);
    CHECK(one.dx == three.dx);
    CHECK(three == computed<Unit>(p, 3));
  });
}

TEST_CASE("products by tiles agree with the definition, with a factor turned, narrow or neither") {
  with_units([]<class Unit> {
    for (std::size_t rows : {20u, 48u, 64u, 100u})
      for (bool narrow : {false, true}) {
        edl::cpu cpu({.threads = 2});
        std::size_t const in = 48, out = 80;
        auto const x = rounded(numbers<float>(rows * in, 1)), w = rounded(numbers<float>(in * out, 2)),
                   dy = rounded(numbers<float>(rows * out, 3));
        auto const kept = as_narrow(x, narrow), kept_dy = as_narrow(dy, narrow);
        std::vector<float> y(rows * out), dx(rows * in), dw(in * out);
        REQUIRE(tiled::multiply_with<Unit>(cpu, rows, out, in, {kept.data(), in, false, narrow},
                                           {w.data(), out}, y.data(), out, narrow));
        REQUIRE(tiled::multiply_with<Unit>(cpu, rows, in, out, {kept_dy.data(), out, false, narrow},
                                           {w.data(), out, true}, dx.data(), in, narrow));
        REQUIRE(tiled::multiply_with<Unit>(cpu, in, out, rows, {kept.data(), in, true, narrow},
                                           {dy.data(), out}, dw.data(), out, false));
        auto const bias = numbers<float>(out, 4);
        std::vector<float> finished(y.size());
        REQUIRE(tiled::multiply_with<Unit>(cpu, rows, out, in, {kept.data(), in, false, narrow},
                                           {w.data(), out}, finished.data(), out, false,
                                           edl::activation::relu, bias));
        for (std::size_t i = 0; i < y.size() && !narrow; ++i)
          CHECK(finished[i] == std::max(y[i] + bias[i % out], 0.0f));
        double const near = narrow ? rounding : of_sums;
        CHECK(error_of(as_wide(y, rows * out, narrow), product(rows, out, in, x, false, w, false)) < near);
        CHECK(error_of(as_wide(dx, rows * in, narrow), product(rows, in, out, dy, false, w, true)) < near);
        CHECK(error_of(dw, product(in, out, rows, x, true, dy, false)) < of_sums);
      }
  });
}

TEST_CASE("a product whose rows have gaps, or whose rows or columns fill no tile, is left to others") {
  edl::cpu cpu;
  std::vector<float> const a(64 * 64), b(64 * 64);
  std::vector<float> c(64 * 64, 7);
  auto const done = [&](std::size_t n, std::size_t stride, std::size_t m = 32) {
    return tiled::multiply_with<emulated_unit>(cpu, m, n, 32, {a.data(), stride}, {b.data(), n}, c.data(), n,
                                               false);
  };
  CHECK(!done(32, 40));
  CHECK(!done(24, 32));
  CHECK(!done(32, 32, 37));  // no groups of rows
  CHECK(c == std::vector<float>(64 * 64, 7));
  CHECK(done(32, 32));
}

TEST_CASE("what tiles cannot compute does not fit") {
  edl::conv_geometry const g{{4, 4, 32}, {4, 4, 32}, 3, 1, 1, 1, {true, true}};
  CHECK(tiled::can_map(g));
  auto const but = [&](auto&& change) {
    auto other = g;
    change(other);
    return tiled::can_map(other) || tiled::fits(other);
  };
  CHECK(!but([](auto& o) { o.narrow.in = false; }));
  CHECK(!but([](auto& o) { o.narrow.out = false; }));
  CHECK(!but([](auto& o) { o.in.channels = 24; }));
  CHECK(!but([](auto& o) { o.out.channels = 8; }));
  CHECK(!but([](auto& o) { o.kernel = 9; }));
  CHECK(!but([](auto& o) { o.groups = 2; }));
  CHECK(!but([](auto& o) { o.in.channels = o.out.channels = 2048; }));
}

TEST_CASE("a device with a matrix unit takes it by rule, and can be kept from it") {
  problem const p({{8, 8, 64}, {8, 8, 64}, 3, 1, 1, 1}, 16);
  if (!tiled::fits(p.g) || !edl::multiplies(edl::precision::bfloat16)) {
    MESSAGE("left out: this processor, or this build, has no products by tiles");
    return;
  }
  auto const by_device = [&](edl::kernels kernels) {
    edl::cpu cpu({.threads = 2, .kernels = kernels, .precision = edl::precision::bfloat16});
    auto const x = as_narrow(p.x), dy = as_narrow(p.dy);
    std::vector<float> y(dy.size(), 1e9f), dx(x.size(), 1e9f);
    results r{{}, {}, std::vector<float>(p.w.size(), 1e9f), std::vector<float>(p.bias.size(), 1e9f)};
    cpu.conv2d_forward(p.g, p.batch, edl::activation::none, x, p.w, p.bias, y);
    cpu.conv2d_backward(p.g, p.batch, x, p.w, dy, dx, r.dw, r.db);
    r.y = as_wide(y, p.y.size()), r.dx = as_wide(dx, p.dx.size());
    return std::pair(r, cpu.describe_conv2d(p.g, p.batch));
  };
  auto const [fixed, way] = by_device(edl::kernels::fixed);
  auto const [direct, other] = by_device(edl::kernels::direct);
#ifdef __x86_64__
  CHECK(fixed == computed<tiled::unit>(p, 2));
#endif
  CHECK(way == "matrix unit, bfloat16");
  CHECK(other == "oneDNN, direct, bfloat16");
  CHECK(error_of(direct.y, p.y) < rounding);
  auto const [measured, any] = by_device(edl::kernels::measured);
  CHECK(error_of(measured.y, p.y) < 6e-3);
}

}  // namespace tiled_conv2d_test
