// SPDX-License-Identifier: Apache-2.0
#include "edl/device/cpu/conv2d.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "device/draw.hpp"

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
void compare(edl::conv_geometry g, int batch, double tolerance) {
  auto const x = numbers<T>(std::size_t(batch) * g.in.size(), 1);
  auto const w = numbers<T>(g.patch() * std::size_t(g.out.channels), 2);
  auto const bias = numbers<T>(std::size_t(g.out.channels), 3),
             dy = numbers<T>(std::size_t(batch) * g.out.size(), 4);
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

  edl::basic_cpu<T> cpu;
  std::vector<T> scratch(g.scratch(batch), T(1e9)), out(y.size(), T(1e9)), gx(x.size(), T(1e9)),
      gw(w.size(), T(1e9)), gb(bias.size(), T(1e9));
  conv2d_forward(cpu, g, batch, x, w, bias, out, scratch);
  CHECK(greatest_difference(out, y) < tolerance);
  conv2d_backward(cpu, g, batch, x, w, dy, gx, gw, gb, scratch);
  CHECK(greatest_difference(gx, dx) < tolerance);
  CHECK(greatest_difference(gw, dw) < tolerance);
  CHECK(greatest_difference(gb, db) < tolerance);

  // What nobody needs is not computed, and nothing else changes.
  auto const before = gw;
  std::ranges::fill(gw, T(0));
  conv2d_backward(cpu, g, batch, x, w, dy, {}, gw, {}, scratch);
  CHECK(gw == before);
  conv2d_forward(cpu, g, batch, x, w, {}, out, scratch);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] -= double(bias[i % bias.size()]);
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
    compare<double>(g, 3, 1e-11);
    compare<float>(g, 3, 2e-3);
  }
}

TEST_CASE("small maps go into one product by the dozen, the last ones by fewer") {
  compare<double>({{8, 8, 3}, {6, 6, 4}, 3, 1, 0, 1}, 33, 1e-11);  // 14 at once
  compare<double>({{4, 4, 4}, {4, 4, 4}, 3, 1, 1, 2}, 70, 1e-11);  // 32 at once
}
