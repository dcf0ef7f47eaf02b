// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "device/draw.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

TEST_CASE("a dense layer and its gradients, by the definition") {
  std::size_t const rows = 5, inputs = 7, outputs = 3;
  auto const x = numbers<double>(rows * inputs, 1), w = numbers<double>(inputs * outputs, 2),
             b = numbers<double>(outputs, 3), dy = numbers<double>(rows * outputs, 4);
  std::vector<double> y(rows * outputs), dx(x.size()), dw(w.size()), db(outputs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      y[r * outputs + o] = b[o];
      db[o] += dy[r * outputs + o];
      for (std::size_t i = 0; i < inputs; ++i) {
        y[r * outputs + o] += x[r * inputs + i] * w[i * outputs + o];
        dx[r * inputs + i] += dy[r * outputs + o] * w[i * outputs + o];
        dw[i * outputs + o] += dy[r * outputs + o] * x[r * inputs + i];
      }
    }
  edl::basic_cpu<double> cpu;
  std::vector<double> out(y.size(), 9), gx(x.size(), 9), gw(w.size(), 9), gb(outputs, 9);
  cpu.dense_forward(rows, inputs, outputs, edl::activation::none, x, w, b, out);
  cpu.dense_backward(rows, inputs, outputs, x, w, dy, gx, gw, gb);
  CHECK(greatest_difference(out, y) < 1e-14);
  CHECK(greatest_difference(gx, dx) < 1e-14);
  CHECK(greatest_difference(gw, dw) < 1e-14);
  CHECK(greatest_difference(gb, db) < 1e-14);
  cpu.dense_backward(rows, inputs, outputs, x, w, dy, {}, gw, {});
  CHECK(greatest_difference(gw, dw) < 1e-14);
}
