// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/convolution/winograd_wide.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"

namespace conv2d_test {

namespace {

/// A second implementation, by the definition.
struct naive {
  edl::conv_geometry g;
  int batch;

  /// Visits every (output, input, weight) that meet.
  template <class Visit>
  void each(Visit&& visit) const {
    int const ci = g.in.channels / g.groups, co = g.out.channels / g.groups;
    for (int s = 0; s < batch; ++s)
      for (int i = 0; i < g.out.height; ++i)
        for (int j = 0; j < g.out.width; ++j)
          for (int f = 0; f < g.out.channels; ++f)
            for (int a = 0; a < g.kernel.height; ++a)
              for (int b = 0; b < g.kernel.width; ++b)
                for (int c = 0; c < ci; ++c) {
                  int const r = i * g.stride.height + a - g.before.height,
                            q = j * g.stride.width + b - g.before.width;
                  if (r < 0 || q < 0 || r >= g.in.height || q >= g.in.width) continue;
                  visit(((s * g.out.height + i) * g.out.width + j) * g.out.channels + f,
                        ((s * g.in.height + r) * g.in.width + q) * g.in.channels + f / co * ci + c,
                        ((a * g.kernel.width + b) * ci + c) * g.out.channels + f);
                }
  }
};

template <class T>
void compare(edl::conv_geometry g, int batch, double tolerance, edl::cpu_options o = {}) {
  // Factors that are bfloat16 already have products that float32 holds: bounds need not be wider.
  auto const drawn = [&](std::size_t n, std::uint64_t key) {
    return o.precision == edl::precision::bfloat16 ? rounded(numbers<T>(n, key)) : numbers<T>(n, key);
  };
  auto const x = drawn(std::size_t(batch) * g.in.size(), 1);
  auto const w = drawn(g.patch() * std::size_t(g.out.channels), 2);
  auto const bias = numbers<T>(std::size_t(g.out.channels), 3),
             dy = drawn(std::size_t(batch) * g.out.size(), 4);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(bias.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = double(bias[i % bias.size()]);
    db[i % bias.size()] += double(dy[i]);
  }
  naive{g, batch}.each([&](int out, int in, int weight) {
    y[std::size_t(out)] += double(x[std::size_t(in)]) * double(w[std::size_t(weight)]);
    dx[std::size_t(in)] += double(dy[std::size_t(out)]) * double(w[std::size_t(weight)]);
    dw[std::size_t(weight)] += double(dy[std::size_t(out)]) * double(x[std::size_t(in)]);
  });

  edl::basic_cpu<T> cpu(o);
  std::vector<T> out(y.size(), T(1e9)), gx(x.size(), T(1e9)), gw(w.size(), T(1e9)), gb(bias.size(), T(1e9));
  cpu.conv2d_forward(g, batch, edl::activation::none, x, w, bias, out);
  CHECK(greatest_difference(out, y) < tolerance);
  cpu.conv2d_backward(g, batch, x, w, dy, gx, gw, gb);
  CHECK(greatest_difference(gx, dx) < tolerance);
  CHECK(greatest_difference(gw, dw) < tolerance);
  CHECK(greatest_difference(gb, db) < tolerance);

  // What nobody needs is not computed, and nothing else changes.
  auto const before = gw;
  std::ranges::fill(gw, T(0));
  cpu.conv2d_backward(g, batch, x, w, dy, {}, gw, {});
  CHECK(gw == before);
  cpu.conv2d_forward(g, batch, edl::activation::none, x, w, {}, out);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] -= double(bias[i % bias.size()]);
  CHECK(greatest_difference(out, y) < tolerance);
  for (double& v : y) v = std::max(v, 0.0);
  cpu.conv2d_forward(g, batch, edl::activation::relu, x, w, {}, out);
  CHECK(greatest_difference(out, y) < tolerance);
}

}  // namespace

TEST_CASE("convolutions agree with the definition, whatever the stride, the border and the groups") {
  edl::conv_geometry const cases[] = {
      {{7, 6, 3}, {5, 4, 4}, 3, 1, 0, 1},            // valid
      {{7, 6, 3}, {7, 6, 4}, 3, 1, 1, 1},            // same
      {{7, 6, 2}, {4, 3, 4}, 3, 2, {1, 0}, 1},       // same, strided, more after than before
      {{9, 5, 4}, {3, 2, 6}, {3, 2}, {3, 2}, 0, 2},  // oblong, in groups
      {{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6},            // depthwise
      {{3, 2, 2}, {3, 2, 3}, 5, 1, 2, 1},            // the kernel is larger than the input
      {{6, 6, 5}, {6, 6, 7}, 1, 1, 0, 1},            // pointwise
      {{6, 6, 5}, {3, 3, 7}, 1, 2, 0, 1},            // pointwise, strided
      {{28, 28, 1}, {26, 26, 8}, 3, 1, 0, 1},        // one channel
      {{26, 26, 8}, {24, 24, 16}, 3, 1, 0, 1},
  };
  for (auto const& g : cases) {
    CAPTURE(g.in.height);
    CAPTURE(g.stride.height);
    CAPTURE(g.groups);
    for (int threads : {1, 2, 4}) {
      compare<double>(g, 3, 1e-11, {.threads = threads});
      for (bool libraries : {false, true})
        compare<float>(g, 3, 2e-3,
                       {.threads = threads, .kernels = libraries ? edl::kernels::fixed : edl::kernels::own});
    }
  }
}

TEST_CASE("any convolution agrees with the definition, with the library's kernels and with edl's own") {
  edl::random_stream const random(20, 0);
  std::uint64_t drawn = 0;
  auto const upto = [&](int n) { return int(random.below(std::uint64_t(n), drawn++)) + 1; };
  for (int i = 0; i < 60; ++i) {
    int const groups = upto(2), own = upto(20), filters = upto(20), kernel = upto(5), stride = upto(3);
    int const height = upto(12), width = upto(12), before = upto(kernel) - 1, batch = upto(9);
    auto const places = [&](int in) { return (std::max(in, kernel) - kernel + before) / stride + 1; };
    edl::conv_geometry const g{{height, width, groups * own},
                               {places(height), places(width), groups * filters},
                               kernel,
                               stride,
                               before,
                               groups};
    CAPTURE(i);
    for (bool libraries : {false, true})
      compare<float>(g, batch, 5e-3,
                     {.threads = upto(3), .kernels = libraries ? edl::kernels::fixed : edl::kernels::own});
  }
}

TEST_CASE("Winograd's algorithm agrees with the definition, shapes that fill no tile included") {
  for (auto const& g : {edl::conv_geometry{{26, 26, 32}, {24, 24, 64}, 3, 1, 0, 1},
                        edl::conv_geometry{{7, 5, 32}, {7, 5, 32}, 3, 1, 1, 1},
                        edl::conv_geometry{{4, 4, 64}, {4, 4, 48}, 3, 1, 1, 1},
                        edl::conv_geometry{{9, 6, 48}, {8, 5, 32}, 3, 1, {1, 1}, 1}})
    for (int batch : {1, 3, 5})
      for (bool winograd : {false, true})
        compare<float>(g, batch, winograd ? 2e-2 : 5e-3,
                       {.threads = 2, .kernels = winograd ? edl::kernels::fixed : edl::kernels::direct});
  edl::random_stream const random(21, 0);
  std::uint64_t drawn = 0;
  auto const upto = [&](int n) { return int(random.below(std::uint64_t(n), drawn++)) + 1; };
  for (int i = 0; i < 25; ++i) {
    int const height = 3 + upto(14), width = 3 + upto(14), before = upto(2) - 1;
    edl::conv_geometry const g{{height, width, 16 + 16 * upto(4)},
                               {height + 2 * before - 2, width + 2 * before - 2, 16 + 16 * upto(4)},
                               3,
                               1,
                               before,
                               1};
    CAPTURE(height);
    CAPTURE(width);
    CAPTURE(before);
    compare<float>(g, upto(6), 2e-2, {.threads = upto(3)});
  }
}

TEST_CASE("Winograd's algorithm cut by channels agrees as well, and so do maps that a cache does not hold") {
  compare<float>({{4, 4, 128}, {4, 4, 256}, 3, 1, 1, 1}, 3, 5e-2, {.threads = 2});  // by channels
  compare<float>({{4, 4, 256}, {4, 4, 128}, 3, 1, 1, 1}, 2, 5e-2, {.threads = 1});
  compare<float>({{64, 64, 32}, {64, 64, 32}, 3, 1, 1, 1}, 2, 5e-2, {.threads = 2});  // a sample in a piece
  compare<float>({{32, 32, 32}, {32, 32, 48}, 3, 1, 1, 1}, 23, 5e-2, {.threads = 3});
}

TEST_CASE("whichever way is measured to be the fastest, it agrees with the definition") {
  for (auto const& g : {edl::conv_geometry{{8, 8, 32}, {8, 8, 32}, 3, 1, 1, 1},
                        edl::conv_geometry{{4, 4, 64}, {4, 4, 64}, 3, 1, 1, 1},
                        edl::conv_geometry{{9, 7, 3}, {5, 4, 8}, 3, 2, 1, 1},
                        edl::conv_geometry{{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6}})
    compare<float>(g, 4, 2e-2, {.threads = 2, .kernels = edl::kernels::measured});
}

TEST_CASE("factors of bfloat16 are multiplied and summed as the definition says") {
  std::vector<edl::kernels> kernels{edl::kernels::own};
  if (edl::multiplies(edl::precision::bfloat16))
    kernels.insert(kernels.end(), {edl::kernels::fixed, edl::kernels::measured});
  else
    MESSAGE("left out: this processor, or this build, has no products of bfloat16");
  for (auto const k : kernels)
    for (int threads : {1, 3}) {
      edl::cpu_options const o{.threads = threads, .kernels = k, .precision = edl::precision::bfloat16};
      CAPTURE(int(k));
      compare<float>({{7, 6, 3}, {7, 6, 4}, 3, 1, 1, 1}, 3, 2e-3, o);
      compare<float>({{7, 6, 2}, {4, 3, 4}, 3, 2, {1, 0}, 1}, 3, 2e-3, o);
      compare<float>({{9, 5, 4}, {3, 2, 6}, {3, 2}, {3, 2}, 0, 2}, 3, 2e-3, o);
      compare<float>({{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6}, 5, 2e-3, o);
      compare<float>({{6, 6, 5}, {3, 3, 7}, 1, 2, 0, 1}, 2, 2e-3, o);
      compare<float>({{16, 16, 32}, {16, 16, 48}, 3, 1, 1, 1}, 7, k == edl::kernels::measured ? 5e-2 : 5e-3,
                     o);
      compare<float>({{4, 4, 128}, {4, 4, 64}, 3, 1, 1, 1}, 4, k == edl::kernels::measured ? 5e-2 : 5e-3, o);
    }
}

TEST_CASE("with bfloat16 other factors are rounded, and nothing else is") {
  edl::conv_geometry const g{{9, 9, 16}, {9, 9, 16}, 3, 1, 1, 1};
  auto const x = numbers<float>(5 * g.in.size(), 1), w = numbers<float>(g.patch() * 16, 2),
             dy = numbers<float>(5 * g.out.size(), 3), bias = numbers<float>(16, 4);
  std::vector<edl::kernels> kernels{edl::kernels::own};
  if (edl::multiplies(edl::precision::bfloat16)) kernels.push_back(edl::kernels::fixed);
  for (auto const k : kernels) {
    edl::cpu cpu({.threads = 2, .kernels = k, .precision = edl::precision::bfloat16});
    std::vector<float> y(dy.size()), dx(x.size()), dw(w.size()), db(16), again_y(dy.size()),
        again_dx(x.size()), again_dw(w.size()), again_db(16);
    cpu.conv2d_forward(g, 5, edl::activation::none, x, w, bias, y);
    cpu.conv2d_backward(g, 5, x, w, dy, dx, dw, db);
    cpu.conv2d_forward(g, 5, edl::activation::none, rounded(x), rounded(w), bias, again_y);
    cpu.conv2d_backward(g, 5, rounded(x), rounded(w), rounded(dy), again_dx, again_dw, again_db);
    CHECK(y == again_y);
    CHECK(dx == again_dx);
    CHECK(dw == again_dw);
    edl::cpu exact({.threads = 2, .kernels = edl::kernels::direct});
    exact.conv2d_forward(g, 5, edl::activation::none, x, w, bias, again_y);
    CHECK(greatest_difference(y, again_y) > 1e-4);
    CHECK(greatest_difference(y, again_y) < 0.1);
  }
}

TEST_CASE("equal numbers of threads give equal bits") {
  edl::conv_geometry const g{{9, 9, 3}, {9, 9, 8}, 3, 1, 1, 1};
  auto const x = numbers<float>(13 * g.in.size(), 1), w = numbers<float>(27 * 8, 2),
             dy = numbers<float>(13 * g.out.size(), 3);
  for (bool libraries : {false, true}) {
    std::vector<float> first[2], again[2];
    for (auto* out : {first, again}) {
      edl::cpu cpu({.threads = 3, .kernels = libraries ? edl::kernels::fixed : edl::kernels::own});
      out[0].resize(dy.size()), out[1].resize(w.size());
      cpu.conv2d_forward(g, 13, edl::activation::none, x, w, {}, out[0]);
      cpu.conv2d_backward(g, 13, x, w, dy, {}, out[1], {});
    }
    CHECK(first[0] == again[0]);
    CHECK(first[1] == again[1]);
  }
}

TEST_CASE("small maps go into one product by the dozen, the last ones by fewer") {
  compare<double>({{8, 8, 3}, {6, 6, 4}, 3, 1, 0, 1}, 33, 1e-11);  // 14 at once
  compare<double>({{4, 4, 4}, {4, 4, 4}, 3, 1, 1, 2}, 70, 1e-11);  // 32 at once
}

TEST_CASE("samples may be bfloat16 on either side, with the library's kernels and without") {
  std::vector<edl::kernels> kernels{edl::kernels::own};
  if (edl::multiplies(edl::precision::bfloat16)) kernels.push_back(edl::kernels::fixed);
  for (auto const& plain : {edl::conv_geometry{{8, 6, 32}, {8, 6, 16}, 3, 1, 1, 1},
                            edl::conv_geometry{{9, 7, 4}, {5, 4, 8}, 3, 2, 1, 1},
                            edl::conv_geometry{{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6},
                            edl::conv_geometry{{6, 6, 5}, {6, 6, 7}, 1, 1, 0, 1}})
    for (auto const k : kernels)
      for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}}) {
        constexpr int batch = 5;
        CAPTURE(sides.in);
        CAPTURE(sides.out);
        auto narrow = plain;
        narrow.narrow = sides;
        edl::cpu cpu({.threads = 2, .kernels = k, .precision = edl::precision::bfloat16});
        auto const x = rounded(numbers<float>(batch * plain.in.size(), 1)),
                   w = rounded(numbers<float>(plain.patch() * std::size_t(plain.out.channels), 2)),
                   bias = numbers<float>(std::size_t(plain.out.channels), 3),
                   dy = rounded(numbers<float>(batch * plain.out.size(), 4));
        std::vector<float> y(dy.size()), dx(x.size()), dw(w.size()), db(bias.size());
        cpu.conv2d_forward(plain, batch, edl::activation::relu, x, w, bias, y);
        cpu.conv2d_backward(plain, batch, x, w, dy, dx, dw, db);
        auto const in = as_narrow(x, sides.in), out = as_narrow(dy, sides.out);
        std::vector<float> to(out.size()), back(in.size()), kernel(w.size()), sums(bias.size());
        cpu.conv2d_forward(narrow, batch, edl::activation::relu, in, w, bias, to);
        cpu.conv2d_backward(narrow, batch, in, w, out, back, kernel, sums);
        // Sums of some hundred products of numbers below 1, with 8 bits where they are narrow.
        auto const near = [](bool of_8_bits) { return of_8_bits ? 0.13 : 1e-3; };
        CHECK(greatest_difference(as_wide(to, y.size(), sides.out), y) < near(sides.out));
        CHECK(greatest_difference(as_wide(back, dx.size(), sides.in), dx) < near(sides.in));
        CHECK(greatest_difference(kernel, dw) < 1e-3);
        CHECK(greatest_difference(sums, db) < 1e-3);
        // A kernel that is not trained.
        std::ranges::fill(sums, 1e9f);
        cpu.conv2d_backward(narrow, batch, in, w, out, {}, {}, sums);
        CHECK(greatest_difference(sums, db) < 1e-3);
      }
}

TEST_CASE("layouts of kernels are kept from when they are written, where that is asked for") {
  edl::conv_geometry const g{{8, 8, 16}, {8, 8, 16}, 3, 1, 1, 1};
  auto const x = numbers<float>(8 * g.in.size(), 1), other = numbers<float>(g.patch() * 16, 3);
  for (auto const k : {edl::kernels::direct, edl::kernels::fixed})
    for (int const batch : {1, 8}) {
      auto w = numbers<float>(g.patch() * 16, 2);
      edl::cpu keeping({.threads = 2, .kernels = k, .keep_kernels = true}),
          anew({.threads = 2, .kernels = k});
      auto const by = [&](edl::cpu& on) {
        std::vector<float> y(std::size_t(batch) * g.out.size());
        on.conv2d_forward(g, batch, edl::activation::none, edl::view<float>(x).first(y.size()), w, {}, y);
        return y;
      };
      CHECK(by(keeping) == by(anew));  // nobody has said that they are written
      w = numbers<float>(g.patch() * 16, 4);
      CHECK(by(keeping) == by(anew));
      for (int i = 0; i < 3; ++i) {
        keeping.kernels_written();
        CHECK(by(keeping) == by(anew));
        CHECK(by(keeping) == by(anew));
        for (std::size_t j = 0; j < w.size(); ++j) w[j] += other[j];  // where the others were
      }
      bool const tiled = k == edl::kernels::fixed && edl::detail::winograd_wide::fits(g);
      CHECK((by(keeping) == by(anew)) == ((batch > 4 && !tiled) || !edl::detail::has_onednn()));
    }
}

}  // namespace conv2d_test
