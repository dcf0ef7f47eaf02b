// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace dense_test {

namespace {

/// A dense layer and its gradients by the definition. `factor_of` is what products make of a number.
struct by_definition {
  std::vector<double> y, dx, dw, db;

  template <class T, class Factor>
  by_definition(std::size_t rows, std::size_t inputs, std::size_t outputs, std::vector<T> const& x,
                std::vector<T> const& w, std::vector<T> const& b, std::vector<T> const& dy, Factor factor_of)
      : y(rows * outputs), dx(x.size()), dw(w.size()), db(outputs) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t o = 0; o < outputs; ++o) {
        std::size_t const at = r * outputs + o;
        y[at] = double(b[o]);
        db[o] += double(dy[at]);  // no product: as it is
        for (std::size_t i = 0; i < inputs; ++i) {
          double const in = factor_of(x[r * inputs + i]), weight = factor_of(w[i * outputs + o]),
                       slope = factor_of(dy[at]);
          y[at] += in * weight;
          dx[r * inputs + i] += slope * weight;
          dw[i * outputs + o] += slope * in;
        }
      }
  }
};

}  // namespace

TEST_CASE("a dense layer and its gradients, by the definition") {
  std::size_t const rows = 5, inputs = 7, outputs = 3;
  auto const x = numbers<double>(rows * inputs, 1), w = numbers<double>(inputs * outputs, 2),
             b = numbers<double>(outputs, 3), dy = numbers<double>(rows * outputs, 4);
  by_definition const is(rows, inputs, outputs, x, w, b, dy, [](double v) { return v; });
  edl::basic_cpu<double> cpu;
  std::vector<double> out(is.y.size(), 9), gx(x.size(), 9), gw(w.size(), 9), gb(outputs, 9);
  cpu.dense_forward(rows, inputs, outputs, edl::activation::none, x, w, b, out);
  cpu.dense_backward(rows, inputs, outputs, x, w, dy, gx, gw, gb);
  CHECK(greatest_difference(out, is.y) < 1e-14);
  CHECK(greatest_difference(gx, is.dx) < 1e-14);
  CHECK(greatest_difference(gw, is.dw) < 1e-14);
  CHECK(greatest_difference(gb, is.db) < 1e-14);
  cpu.dense_backward(rows, inputs, outputs, x, w, dy, {}, gw, {});
  CHECK(greatest_difference(gw, is.dw) < 1e-14);
}

TEST_CASE("one row by a matrix of which rows are left out, as they meet zeros") {
  std::size_t const inputs = 301, outputs = 531;
  auto const w = numbers<float>(inputs * outputs, 2), b = numbers<float>(outputs, 3);
  for (std::size_t const every : {1, 2, 3, 5}) {  // of 5 four are none, which is left to a library
    auto x = numbers<float>(inputs, 1);
    for (std::size_t i = 0; i < inputs; i += every) x[i] = 0;
    by_definition const is(1, inputs, outputs, x, w, b, std::vector<float>(outputs),
                           [](float v) { return double(v); });
    for (int threads : {1, 2, 3}) {
      CAPTURE(every);
      CAPTURE(threads);
      edl::cpu cpu({.threads = threads, .kernels = edl::kernels::fixed});
      std::vector<float> out(outputs, 9);
      cpu.dense_forward(1, inputs, outputs, edl::activation::none, x, w, b, out);
      CHECK(greatest_difference(out, is.y) < 5e-5);
    }
  }
}

TEST_CASE("a dense layer by every kernel: with bfloat16 its factors are rounded, and nothing else is") {
  using enum edl::precision;
  edl::precision precision = float32;
  SUBCASE("float32") {}
  SUBCASE("bfloat16") { precision = bfloat16; }
  struct {
    std::size_t rows, inputs, outputs;
  } const cases[] = {{5, 7, 3}, {64, 100, 10}, {33, 129, 65}, {256, 64, 48}};
  std::vector<edl::kernels> kernels{edl::kernels::own};
  if (precision == float32 || edl::multiplies(bfloat16))
    kernels.insert(kernels.end(), {edl::kernels::fixed, edl::kernels::measured});
  else
    MESSAGE("left out: this processor, or this build, has no products of bfloat16");
  for (auto const [rows, inputs, outputs] : cases) {
    auto const x = numbers<float>(rows * inputs, 1), w = numbers<float>(inputs * outputs, 2),
               b = numbers<float>(outputs, 3), dy = numbers<float>(rows * outputs, 4);
    by_definition const is(rows, inputs, outputs, x, w, b, dy, [&](float v) {
      return double(precision == bfloat16 ? edl::from_bfloat16(edl::to_bfloat16(v)) : v);
    });
    for (auto const k : kernels)
      for (int threads : {1, 2, 3}) {
        CAPTURE(rows);
        CAPTURE(int(k));
        edl::cpu cpu({.threads = threads, .kernels = k, .precision = precision});
        std::vector<float> out(is.y.size(), 9), gx(x.size(), 9), gw(w.size(), 9), gb(outputs, 9);
        cpu.dense_forward(rows, inputs, outputs, edl::activation::none, x, w, b, out);
        cpu.dense_backward(rows, inputs, outputs, x, w, dy, gx, gw, gb);
        CHECK(greatest_difference(out, is.y) < 1e-4);
        CHECK(greatest_difference(gx, is.dx) < 1e-4);
        CHECK(greatest_difference(gw, is.dw) < 1e-4);
        CHECK(greatest_difference(gb, is.db) < 1e-4);
        if (precision != bfloat16 || inputs % 2 != 0) continue;
        // The same of samples that are rounded already.
        auto const half = as_narrow(x);
        std::vector<float> same(out.size(), 9), back(half.size(), 9), weights(w.size(), 9);
        cpu.dense_forward(rows, inputs, outputs, edl::activation::none, half, w, b, same, true);
        cpu.dense_backward(rows, inputs, outputs, half, w, dy, back, weights, {}, true);
        CHECK(same == out);
        CHECK(weights == gw);
        CHECK(greatest_difference(as_wide(back, x.size()), gx) < 0x1p-8 * 8);  // of numbers below 8
      }
  }
}

}  // namespace dense_test
