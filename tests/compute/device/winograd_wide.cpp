// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/convolution/winograd_wide.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow_convolution.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"

namespace winograd_wide_test {

using namespace narrow_convolution;

namespace {

namespace winograd = edl::detail::winograd_wide;

/// The same of samples that are float32.
problem wide(edl::conv_geometry const& g, int batch) {
  problem p(g, batch, false);
  p.g.narrow = {};
  return p;
}

struct passes {
  std::vector<float> y, dx;

  friend bool operator==(passes const&, passes const&) = default;
};

passes by_winograd(problem const& p, int threads, edl::activation f = edl::activation::none,
                   bool bias = true) {
  edl::cpu cpu({.threads = threads});
  passes r{std::vector<float>(p.y.size(), 1e9f), std::vector<float>(p.dx.size(), 1e9f)};
  winograd::forward(cpu, p.g, p.batch, f, p.x, p.w, bias ? edl::view<float>(p.bias) : edl::view<float>(),
                    r.y);
  winograd::to_input(cpu, p.g, p.batch, p.w, p.dy, r.dx);
  return r;
}

bool left_out() {
  if (winograd::fits({{8, 8, 16}, {8, 8, 16}, 3, 1, 1, 1})) return false;
  MESSAGE("left out: this processor has no vectors of 512 bits");
  return true;
}

// Plain products err by some 1e-7 of their size.
constexpr double near = 5e-6;

void compare(edl::conv_geometry const& g, int batch, int threads) {
  problem const p = wide(g, batch);
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
}

}  // namespace

TEST_CASE("tiles of 4 x 4 agree with the definition, whatever the map, its border and the channels") {
  if (left_out()) return;
  for (auto const& g : {edl::conv_geometry{{8, 8, 16}, {8, 8, 16}, 3, 1, 1, 1},
                        edl::conv_geometry{{4, 4, 48}, {4, 4, 32}, 3, 1, 1, 1},
                        edl::conv_geometry{{7, 5, 16}, {7, 5, 64}, 3, 1, 1, 1},  // fills no tile
                        edl::conv_geometry{{8, 9, 32}, {6, 7, 16}, 3, 1, 0, 1},  // valid
                        edl::conv_geometry{{6, 5, 16}, {8, 7, 32}, 3, 1, 2, 1},  // full
                        edl::conv_geometry{{9, 6, 32}, {8, 5, 16}, 3, 1, 1, 1},  // less after than before
                        edl::conv_geometry{{5, 6, 16}, {5, 4, 16}, 3, 1, {1, 0}, 1},
                        edl::conv_geometry{{1, 1, 16}, {1, 1, 16}, 3, 1, 1, 1},
                        edl::conv_geometry{{13, 14, 128}, {13, 14, 16}, 3, 1, 1, 1}})  // several pieces
    for (int threads : {1, 2, 3}) compare(g, 3, threads);
  compare_some(23, 16, 14, compare);
}

TEST_CASE("bias and relu are part of it, a bias may be missing, and what is no number stays") {
  if (left_out()) return;
  problem p = wide({{6, 7, 16}, {6, 7, 32}, 3, 1, 1, 1}, 3);
  auto const plain = by_winograd(p, 2), positive = by_winograd(p, 2, edl::activation::relu),
             without = by_winograd(p, 2, edl::activation::none, false);
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    CHECK(positive.y[i] == std::max(plain.y[i], 0.0f));
    p.y[i] -= double(p.bias[i % p.bias.size()]);
  }
  CHECK(error_of(without.y, p.y) < near);
  p.x[0] = std::numeric_limits<float>::quiet_NaN();
  auto const spoiled = by_winograd(p, 1, edl::activation::relu);
  CHECK(spoiled.y[0] != spoiled.y[0]);
}

TEST_CASE("samples have the same bits for any number of threads and in any batch") {
  if (left_out()) return;
  // Threads share tiles, or panels of filters.
  for (auto const& g : {edl::conv_geometry{{9, 8, 32}, {9, 8, 48}, 3, 1, 1, 1},
                        edl::conv_geometry{{8, 8, 16}, {8, 8, 128}, 3, 1, 1, 1}}) {
    problem const p = wide(g, 13);
    auto const all = by_winograd(p, 1);
    CHECK(all == by_winograd(p, 3));
    problem one = p;
    one.batch = 1;
    one.x.resize(g.in.size()), one.y.resize(g.out.size());
    one.dy.resize(g.out.size()), one.dx.resize(g.in.size());
    auto const alone = by_winograd(one, 2);
    CHECK(std::equal(alone.y.begin(), alone.y.end(), all.y.begin()));
    CHECK(std::equal(alone.dx.begin(), alone.dx.end(), all.dx.begin()));
  }
}

TEST_CASE("a device computes so by rule, and can be kept from it") {
  if (left_out() || !edl::detail::has_onednn()) return;
  problem const p = wide({{8, 8, 32}, {8, 8, 32}, 3, 1, 1, 1}, 8);
  auto const by_device = [&](edl::kernels kernels) {
    edl::cpu cpu({.threads = 2, .kernels = kernels});
    passes r{std::vector<float>(p.y.size()), std::vector<float>(p.dx.size())};
    std::vector<float> dw(p.w.size()), db(p.bias.size());
    cpu.conv2d_forward(p.g, p.batch, edl::activation::none, p.x, p.w, p.bias, r.y);
    cpu.conv2d_backward(p.g, p.batch, p.x, p.w, p.dy, r.dx, dw, db);
    CHECK(error_of(dw, p.dw) < 1e-5);
    CHECK(error_of(db, p.db) < 1e-5);
    return r;
  };
  auto const transformed = by_winograd(p, 2);
  CHECK(by_device(edl::kernels::fixed) == transformed);
  auto const plain = by_device(edl::kernels::direct);
  CHECK(plain.y != transformed.y);
  CHECK(error_of(plain.y, p.y) < 1e-6);
  CHECK(error_of(by_device(edl::kernels::measured).y, p.y) < 2e-5);
}

TEST_CASE("by rule, few tiles of many channels have plain products") {
  if (left_out()) return;
  edl::conv_geometry const many{{8, 8, 256}, {8, 8, 256}, 3, 1, 1, 1};
  CHECK(!winograd::faster(many, 1));
  CHECK(winograd::faster(many, 8));
  CHECK(winograd::faster({{8, 8, 128}, {8, 8, 128}, 3, 1, 1, 1}, 1));
  CHECK(!winograd::faster({{3, 3, 16}, {3, 3, 16}, 3, 1, 1, 1}, 64));
}

TEST_CASE("what it cannot compute does not fit") {
  edl::conv_geometry const g{{4, 4, 16}, {4, 4, 16}, 3, 1, 1, 1};
  auto const but = [&](auto&& change) {
    auto other = g;
    change(other);
    return winograd::fits(other);
  };
  CHECK(!but([](auto& o) { o.narrow.in = true; }));
  CHECK(!but([](auto& o) { o.in.channels = 24; }));
  CHECK(!but([](auto& o) { o.out.channels = 8; }));
  CHECK(!but([](auto& o) { o.stride = 2; }));
  CHECK(!but([](auto& o) { o.kernel = 5; }));
  CHECK(!but([](auto& o) { o.groups = 2; }));
  CHECK(!but([](auto& o) { o.before = 3; }));
  CHECK(!but([](auto& o) { o.in.channels = o.out.channels = 1024; }));
}

}  // namespace winograd_wide_test
