// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cuda/kernels/board.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace pool_test {

TEST_CASE("pooling, and its gradients") {
  using edl::pool_geometry;
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    int const batch = 3;
    for (pool_geometry const& p : {
             pool_geometry{{6, 8, 16}, {3, 4, 16}, 2, 2, 0},               // side by side
             pool_geometry{{7, 5, 3}, {3, 2, 3}, 2, 2, 0},                 // and what fills none
             pool_geometry{{7, 6, 8}, {4, 3, 8}, 3, 2, 1},                 // that overlap, beyond the border
             pool_geometry{{5, 9, 24}, {5, 9, 24}, 3, 1, 1},               //
             pool_geometry{{5, 5, 1}, {2, 2, 1}, {1, 2}, {4, 3}, {0, 0}},  // with gaps
             pool_geometry{{4, 4, 40}, {1, 1, 40}, 4, 1, 0},               // all of a sample
         }) {
      CAPTURE(p.in.height);
      CAPTURE(p.in.channels);
      for (std::size_t const before : {0, 1}) {
        auto x = g.draw(batch * p.in.size(), 1);
        for (std::size_t i = 0; i < x.size(); ++i)
          if (i % 3 == 0) x[i] = 0.5;  // often the greatest of a window, twice
        x[x.size() / 2] = std::numeric_limits<double>::quiet_NaN();
        auto const dy = g.draw(batch * p.out.size(), 2);
        std::vector<double> y(dy.size()), dx(x.size());
        void *const from = g.put_activations(x, before), *const to = g.activations(y.size(), before),
                    *const out = g.put_activations(dy, before), *const back = g.activations(x.size(), before);
        kernels::max_pool_forward(g.q, p, batch, from, to);
        cpu.max_pool_forward(p, batch, x, y);
        CHECK(close(g.get_activations(to, y.size()), y, false, 1e-7));
        kernels::max_pool_backward(g.q, p, batch, from, to, out, back);
        cpu.max_pool_backward(p, batch, x, y, dy, dx);
        CHECK(close(g.get_activations(back, dx.size()), dx, half));
        kernels::average_pool_forward(g.q, p, batch, from, to);
        cpu.average_pool_forward(p, batch, x, y);
        CHECK(close(g.get_activations(to, y.size()), y, half));
        kernels::average_pool_backward(g.q, p, batch, out, back);
        cpu.average_pool_backward(p, batch, dy, dx);
        CHECK(close(g.get_activations(back, dx.size()), dx, half));
      }
    }
  });
}

TEST_CASE("the gradient finds the greatest of x, whether x or y has been rounded since") {
  for (bool const backwards : {false, true}) {
    edl::cuda_double::reverse(backwards);
    edl::basic_cpu<float> cpu;
    gpu g(false);
    int const batch = 2;
    for (edl::pool_geometry const& p : {edl::pool_geometry{{6, 8, 4}, {3, 4, 4}, 2, 2, 0},
                                        edl::pool_geometry{{7, 6, 3}, {4, 3, 3}, 3, 2, 1}}) {
      auto const exact = numbers<float>(batch * p.in.size(), 1), dy = numbers<float>(batch * p.out.size(), 2);
      auto const round = [](std::vector<float> v) {
        for (float& x : v) x = edl::from_bfloat16(edl::to_bfloat16(x));
        return v;
      };
      std::vector<float> y(dy.size()), dx(exact.size());
      cpu.max_pool_forward(p, batch, exact, y);
      for (bool const of_x : {false, true}) {
        CAPTURE(of_x);
        auto const x = of_x ? round(exact) : exact;
        void* const back = g.activations(x.size());
        kernels::max_pool_backward(g.q, p, batch, g.put(x), g.put(of_x ? y : round(y)), g.put(dy), back);
        cpu.max_pool_backward(p, batch, x, y, dy, dx);
        CHECK(close(g.get_activations(back, dx.size()), dx, false));
      }
    }
  }
  edl::cuda_double::reverse(false);
}

}  // namespace pool_test
