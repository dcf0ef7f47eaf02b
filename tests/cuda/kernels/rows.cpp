// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/rows.hpp"

#include <array>
#include <limits>

#include "cuda/kernels/board.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace rows_test {

namespace {

struct matrix {
  std::size_t rows, columns;
};

}  // namespace

TEST_CASE("softmax and its gradient") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    for (auto const [rows, classes] :
         {matrix{1, 1}, matrix{100, 10}, matrix{37, 2}, matrix{9, 1000}, matrix{300, 33}}) {
      CAPTURE(rows);
      CAPTURE(classes);
      std::size_t const n = rows * classes;
      auto x = g.draw(n, 1), dy = g.draw(n, 2);
      for (double& each : x) each *= 64;
      x[n / 2] = std::numeric_limits<double>::quiet_NaN();  // and so its row
      std::vector<double> y(n), dx(n);
      cpu.softmax_forward(rows, classes, x, y);
      void *const to = g.activations(n), *const back = g.put_activations(dy);
      kernels::softmax_forward(g.q, rows, classes, g.put_activations(x), to);
      auto const got = g.get_activations(to, n);
      CHECK(close(got, y, half));
      std::copy(got.begin(), got.end(), y.begin());
      cpu.softmax_backward(rows, classes, y, dy, dx);
      kernels::softmax_backward(g.q, rows, classes, to, back, back);
      CHECK(close(g.get_activations(back, n), dx, half, 1e-6, 1));
    }
  });
}

TEST_CASE("products of all pairs of a sample's rows, and their gradient") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    for (auto const [samples, rows, width] : {std::array<std::size_t, 3>{1, 1, 1},
                                              {1, 26, 8},
                                              {300, 3, 1},
                                              {37, 5, 33},
                                              {64, 26, 16},
                                              {9, 7, 130}}) {
      CAPTURE(samples);
      CAPTURE(width);
      std::size_t const n = samples * rows * width;
      auto const x = g.draw(n, 1), dy = g.draw(samples, 2);
      std::vector<double> y(samples), dx(n);
      cpu.factorization_forward(samples, rows, width, x, y);
      cpu.factorization_backward(samples, rows, width, x, dy, dx);
      void *const from = g.put_activations(x), *const to = g.activations(samples),
                  *const back = g.activations(n);
      kernels::factorization_forward(g.q, samples, rows, width, from, to);
      kernels::factorization_backward(g.q, samples, rows, width, from, g.put_activations(dy), back);
      CHECK(close(g.get_activations(to, samples), y, half, 4e-6, 1));
      CHECK(close(g.get_activations(back, n), dx, half, 4e-6, 1));
    }
  });
}

TEST_CASE("the logarithm of softmax and its gradient") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    for (auto const [rows, classes] : {matrix{1, 1}, matrix{37, 2}, matrix{9, 1000}, matrix{300, 33}}) {
      CAPTURE(rows);
      CAPTURE(classes);
      std::size_t const n = rows * classes;
      auto x = g.draw(n, 1), dy = g.draw(n, 2);
      for (double& each : x) each *= 64;
      x[n / 2] = std::numeric_limits<double>::quiet_NaN();  // and so its row
      std::vector<double> y(n), dx(n);
      cpu.log_softmax_forward(rows, classes, x, y);
      void *const to = g.activations(n), *const back = g.put_activations(dy);
      kernels::log_softmax_forward(g.q, rows, classes, g.put_activations(x), to);
      auto const got = g.get_activations(to, n);
      CHECK(close(got, y, half));
      std::copy(got.begin(), got.end(), y.begin());
      cpu.log_softmax_backward(rows, classes, y, dy, dx);
      kernels::log_softmax_backward(g.q, rows, classes, to, back, back);
      CHECK(close(g.get_activations(back, n), dx, half, 1e-5, 1));
    }
  });
}

TEST_CASE("sums of columns") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    for (int const processors : {1, 4, 132}) {
      gpu g(half, processors);
      for (auto const [rows, columns] :
           {matrix{1, 1}, matrix{64, 10}, matrix{1, 1000}, matrix{5000, 3}, matrix{3001, 24}, matrix{777, 64},
            matrix{333, 200}, matrix{2000, 8}, matrix{40, 67}}) {
        CAPTURE(rows);
        CAPTURE(columns);
        CAPTURE(processors);
        auto const x = g.draw(rows * columns, 1);
        std::vector<double> sums(columns);
        sum_rows(cpu, rows, columns, x, sums);
        auto* const to = g.room<float>(columns);
        auto* const scratch = g.room<float>(kernels::sum_rows_scratch(g.q, rows, columns));
        for (std::size_t const before : {0, 1}) {
          kernels::sum_rows(g.q, rows, columns, g.put_activations(x, before), to, scratch);
          CHECK(close(g.get(to, columns), sums, false, 2e-6));
        }
      }
    }
  });
}

}  // namespace rows_test
