// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/kernel_trial.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace kernel_trial_test {

namespace {

using edl::detail::conv_trial;

/// A trial's results by our own loops.
struct passes {
  conv_trial t;
  std::vector<float> y, dx, dw;

  explicit passes(edl::conv_geometry const& g, int batch = 3)
      : t(g, batch),
        y(edl::scalars_of(t.samples * g.out.size(), g.narrow.out)),
        dx(edl::scalars_of(t.samples * g.in.size(), g.narrow.in)),
        dw(t.kernel.taken().size()) {
    edl::detail::poison(y), edl::detail::poison(dx), edl::detail::poison(dw);
    edl::cpu cpu({.kernels = edl::kernels::own, .precision = edl::precision::bfloat16});
    cpu.conv2d_forward(g, batch, edl::activation::none, t.x.taken(), t.kernel.taken(), {}, y);
    cpu.conv2d_backward(g, batch, t.x.taken(), t.kernel.taken(), t.dy.taken(), dx, dw, {});
  }
};

}  // namespace

TEST_CASE("a trial knows what convolutions should be, whatever their strides, borders and groups") {
  for (auto const narrow : {edl::bfloat16_io{}, edl::bfloat16_io{true, true}, edl::bfloat16_io{true, false}})
    for (auto g : {edl::conv_geometry{{5, 4, 6}, {5, 4, 8}, 3, 1, 1, 1},
                   edl::conv_geometry{{7, 6, 4}, {4, 3, 2}, {3, 2}, 2, {1, 0}, 1},
                   edl::conv_geometry{{6, 6, 8}, {6, 6, 4}, 3, 1, 1, 2},
                   edl::conv_geometry{{4, 4, 2}, {2, 2, 6}, 1, 2, 0, 1}}) {
      g.narrow = narrow;
      passes const p(g);
      CHECK(p.t.right_forward(p.y));
      CHECK(p.t.right_data(p.dx));
      CHECK(p.t.right_weights(p.dw));
    }
}

TEST_CASE("what was not written, or is off in a border, does not pass a trial") {
  edl::conv_geometry const g{{6, 6, 4}, {6, 6, 4}, 3, 1, 1, 1};
  passes const p(g);
  auto hole = p.y;
  edl::detail::poison(std::span(hole).last(1));
  CHECK(!p.t.right_forward(hole));
  auto row = p.dx;
  for (std::size_t i = 0; i < 24; ++i) row[i] *= 2;
  CHECK(!p.t.right_data(row));
  auto tap = p.dw;
  for (std::size_t i = 0; i < 16; ++i) tap[i] = 0;
  CHECK(!p.t.right_weights(tap));
  edl::detail::poison(hole);
  CHECK(hole[0] != hole[0]);
}

}  // namespace kernel_trial_test
