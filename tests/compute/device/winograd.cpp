// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/convolution/winograd.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "compute/device/narrow_convolution.hpp"
#include "edl/compute/device/cpu/convolution/tiled_conv2d.hpp"

namespace winograd_test {

using namespace narrow_convolution;

namespace {

namespace winograd = edl::detail::winograd;

results by_winograd(problem const& p, int threads, edl::activation f = edl::activation::none,
                    bool bias = true) {
  edl::cpu cpu({.threads = threads, .kernels = edl::kernels::fixed, .precision = edl::precision::bfloat16});
  auto const x = as_narrow(p.x), dy = as_narrow(p.dy);
  std::vector<float> y(dy.size(), 1e9f), dx(x.size(), 1e9f);
  results r{{}, {}, std::vector<float>(p.w.size(), 1e9f), std::vector<float>(bias ? p.bias.size() : 0, 1e9f)};
  winograd::forward(cpu, p.g, p.batch, f, x, p.w, bias ? edl::view<float>(p.bias) : edl::view<float>(), y);
  winograd::to_input(cpu, p.g, p.batch, p.w, dy, dx);
  winograd::to_kernel(cpu, p.g, p.batch, x, dy, r.dw, r.db);
  r.y = as_wide(y, p.y.size()), r.dx = as_wide(dx, p.dx.size());
  return r;
}

results by_device(problem const& p, edl::kernels kernels) {
  edl::cpu cpu({.threads = 2, .kernels = kernels, .precision = edl::precision::bfloat16});
  auto const x = as_narrow(p.x), dy = as_narrow(p.dy);
  std::vector<float> y(dy.size(), 1e9f), dx(x.size(), 1e9f);
  results r{{}, {}, std::vector<float>(p.w.size(), 1e9f), std::vector<float>(p.bias.size(), 1e9f)};
  cpu.conv2d_forward(p.g, p.batch, edl::activation::none, x, p.w, p.bias, y);
  cpu.conv2d_backward(p.g, p.batch, x, p.w, dy, dx, r.dw, r.db);
  r.y = as_wide(y, p.y.size()), r.dx = as_wide(dx, p.dx.size());
  return r;
}

bool left_out() {
  if (winograd::fits({{4, 4, 32}, {4, 4, 32}, 3, 1, 1, 1, {true, true}}) &&
      edl::multiplies(edl::precision::bfloat16))
    return false;
  MESSAGE("left out: this processor, or this build, has no products of bfloat16");
  return true;
}

// Results and factors are rounded by some 2e-3 of them, and a tile's factors are sums of up to four numbers.
constexpr double near = 6e-3;

void compare(edl::conv_geometry const& g, int batch, int threads) {
  problem const p(g, batch, false);
  REQUIRE(winograd::fits(p.g));
  CAPTURE(g.in.height);
  CAPTURE(g.in.width);
  CAPTURE(g.in.channels);
  CAPTURE(g.out.channels);
  CAPTURE(g.before.height);
  CAPTURE(threads);
  auto const r = by_winograd(p, threads);
  CHECK(error_of(r.y, p.y) < near);
  CHECK(error_of(r.dx, p.dx) < near);
  CHECK(error_of(r.dw, p.dw) < near);
  CHECK(error_of(r.db, p.db) < 1e-5);
}

}  // namespace

TEST_CASE("tiles of 2 x 2 agree with the definition, whatever the map, its border and the channels") {
  if (left_out()) return;
  for (auto const& g : {edl::conv_geometry{{4, 4, 32}, {4, 4, 32}, 3, 1, 1, 1},
                        edl::conv_geometry{{4, 4, 64}, {4, 4, 32}, 3, 1, 1, 1},
                        edl::conv_geometry{{7, 5, 32}, {7, 5, 64}, 3, 1, 1, 1},  // fills no tile
                        edl::conv_geometry{{8, 9, 32}, {6, 7, 96}, 3, 1, 0, 1},  // valid
                        edl::conv_geometry{{6, 5, 32}, {8, 7, 32}, 3, 1, 2, 1},  // full
                        edl::conv_geometry{{9, 6, 32}, {8, 5, 32}, 3, 1, 1, 1},  // less after than before
                        edl::conv_geometry{{5, 6, 64}, {5, 4, 64}, 3, 1, {1, 0}, 1},
                        edl::conv_geometry{{1, 1, 32}, {1, 1, 64}, 3, 1, 1, 1},
                        edl::conv_geometry{{4, 3, 160}, {4, 3, 32}, 3, 1, 1, 1},  // kernels' sums in parts
                        edl::conv_geometry{{2, 2, 288}, {2, 2, 192}, 3, 1, 1, 1},
                        edl::conv_geometry{{22, 20, 32}, {22, 20, 64}, 3, 1, 1, 1}})  // several pieces
    for (int threads : {1, 2, 3}) compare(g, 3, threads);
  compare({{8, 8, 64}, {8, 8, 256}, 3, 1, 1, 1}, 17, 2);
  compare_some(22, 32, 10, compare);
}

TEST_CASE("bias and relu are part of it, and a bias may be missing") {
  if (left_out()) return;
  problem p({{6, 7, 32}, {6, 7, 64}, 3, 1, 1, 1}, 3, false);
  auto const plain = by_winograd(p, 2), positive = by_winograd(p, 2, edl::activation::relu),
             without = by_winograd(p, 2, edl::activation::none, false);
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    CHECK(positive.y[i] == std::max(plain.y[i], 0.0f));
    p.y[i] -= double(p.bias[i % p.bias.size()]);
  }
  CHECK(error_of(without.y, p.y) < near);
  CHECK(without.dw == plain.dw);
}

TEST_CASE("samples have the same bits for any number of threads, gradients of kernels for equal ones") {
  if (left_out()) return;
  problem const p({{9, 8, 64}, {9, 8, 96}, 3, 1, 1, 1}, 13, false);
  auto const one = by_winograd(p, 1), three = by_winograd(p, 3);
  CHECK(one.y == three.y);
  CHECK(one.dx == three.dx);
  CHECK(three == by_winograd(p, 3));
}

TEST_CASE("a device errs about twice as much as with plain products, and can be kept from it") {
  if (left_out()) return;
  problem const p({{8, 8, 64}, {8, 8, 64}, 3, 1, 1, 1}, 16, false);
  auto const tiled = by_device(p, edl::kernels::fixed), plain = by_device(p, edl::kernels::direct);
  bool const unit = edl::detail::tiled::fits(p.g);  // which has its own way by rule
  CHECK((unit || tiled == by_winograd(p, 2)));
  CHECK(error_of(tiled.y, p.y) < 2.3 * error_of(plain.y, p.y));
  CHECK(error_of(tiled.dx, p.dx) < 2.3 * error_of(plain.dx, p.dx));
  CHECK((unit || plain.y != tiled.y));
  CHECK(error_of(plain.dw, p.dw) < 1e-5);  // the factors are bfloat16 already
  auto const measured = by_device(p, edl::kernels::measured);
  auto const transformed = by_winograd(p, 2);
  CHECK((measured.y == tiled.y || measured.y == plain.y || measured.y == transformed.y));
  CHECK((measured.dw == tiled.dw || measured.dw == plain.dw || measured.dw == transformed.dw));
}

TEST_CASE("by rule, few channels and small maps have plain products") {
  if (left_out()) return;
  CHECK(winograd::faster({{8, 8, 32}, {8, 8, 64}, 3, 1, 1, 1, {true, true}}, false));
  edl::conv_geometry const few{{8, 8, 32}, {8, 8, 32}, 3, 1, 1, 1, {true, true}};
  CHECK(!winograd::faster(few, false));
  CHECK(winograd::faster(few, true));
  CHECK(!winograd::faster({{2, 2, 512}, {2, 2, 512}, 3, 1, 1, 1, {true, true}}, true));
}

TEST_CASE("what it cannot compute does not fit") {
  edl::conv_geometry const g{{4, 4, 32}, {4, 4, 32}, 3, 1, 1, 1, {true, true}};
  auto const but = [&](auto&& change) {
    auto other = g;
    change(other);
    return winograd::fits(other);
  };
  CHECK(!but([](auto& o) { o.narrow.in = false; }));
  CHECK(!but([](auto& o) { o.narrow.out = false; }));
  CHECK(!but([](auto& o) { o.in.channels = 48; }));
  CHECK(!but([](auto& o) { o.out.channels = 16; }));
  CHECK(!but([](auto& o) { o.stride = 2; }));
  CHECK(!but([](auto& o) { o.kernel = 5; }));
  CHECK(!but([](auto& o) { o.groups = 2; }));
  CHECK(!but([](auto& o) { o.before = 3; }));
  CHECK(!but([](auto& o) { o.in.channels = o.out.channels = 2048; }));
}

}  // namespace winograd_test
