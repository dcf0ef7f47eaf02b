// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/norm/narrow_norm.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/norm/batch_norm_loops.hpp"
#include "edl/compute/device/cpu/norm/norm_unit.hpp"

namespace narrow_norm_test {

namespace {

namespace norm = edl::detail::narrow_norm;
using edl::activation;
using norm::half;
using arrays = edl::detail::norm_arrays<float>;

std::vector<half> halves(std::vector<float> const& x) {
  std::vector<half> y(x.size());
  std::ranges::transform(x, y.begin(), [](float v) { return edl::to_bfloat16(v); });
  return y;
}
std::vector<float> floats(std::vector<half> const& x) {
  std::vector<float> y(x.size());
  std::ranges::transform(x, y.begin(), [](half v) { return edl::from_bfloat16(v); });
  return y;
}

/// What the vectors do, number by number, on any processor.
struct emulated_unit {
  static float at(half const* x, std::size_t i) { return edl::from_bfloat16(x[i]); }
  template <class Visit>
  static void each_place(norm::strip const& s, std::size_t r, Visit&& visit) {
    for (std::size_t const p : s.places) visit(r * s.in + p);
  }

  static void moments(half const* x, std::size_t stride, std::size_t count, float before, float* mean,
                      float* squares) {
    for (std::size_t k = 0; k < norm::strip_width; ++k)
      for (std::size_t r = 0; r < count; ++r) {
        float const all = before + float(r + 1), off = at(x, r * stride + k) - mean[k];
        mean[k] += off / all;
        squares[k] += off * off * (all - 1) / all;
      }
  }
  static void normalise(norm::strip const& s, bool relu, half const* x, float const* scale,
                        float const* offset, half const* more, half* y) {
    for (std::size_t r = 0; r < s.count; ++r)
      for (std::size_t k = 0; k < norm::strip_width; ++k) {
        float most = relu ? 0 : -std::numeric_limits<float>::infinity();
        each_place(s, r, [&](std::size_t i) {
          float const z =
              std::fma(at(x, i + k), scale[k], offset[k]) + (more ? at(more, r * s.out + k) : 0.0f);
          most = z > most || std::isnan(z) ? z : most;
        });
        y[r * s.out + k] = edl::to_bfloat16(most);
      }
  }
  static void sum_gradients(norm::strip const& s, bool relu, half const* x, half const* dy, arrays const& of,
                            float* sum, float* product) {
    for (std::size_t r = 0; r < s.count; ++r)
      for (std::size_t k = 0; k < norm::strip_width; ++k) {
        float most = -std::numeric_limits<float>::infinity(), where = 0;
        each_place(s, r, [&](std::size_t i) {
          float const z = std::fma(at(x, i + k), of.scale[k], of.offset[k]);
          if (z > most) most = z, where = at(x, i + k);
        });
        float const g = !relu || most > 0 ? at(dy, r * s.out + k) : 0;
        sum[k] += g;
        product[k] += g * (where - of.mean[k]);
      }
  }
  static void write_gradients(norm::strip const& s, bool relu, bool after_relu, half const* x, half const* dy,
                              arrays const& of, half* dx) {
    for (std::size_t r = 0; r < s.count; ++r)
      for (std::size_t k = 0; k < norm::strip_width; ++k) {
        float most = -std::numeric_limits<float>::infinity();
        std::size_t first = 0;
        each_place(s, r, [&](std::size_t i) {
          float const z = std::fma(at(x, i + k), of.scale[k], of.offset[k]);
          if (z > most) most = z, first = i;
        });
        each_place(s, r, [&](std::size_t i) {
          float const in = at(x, i + k), g = i == first && (!relu || most > 0) ? at(dy, r * s.out + k) : 0;
          dx[i + k] =
              edl::to_bfloat16(!after_relu || in > 0 ? g * of.of_dy[k] + in * of.of_x[k] + of.rest[k] : 0);
        });
      }
  }
};

/// work.operator()<Unit>() for the double, and for the processor's own where it has one.
template <class Work>
void with_units(Work&& work) {
  work.template operator()<emulated_unit>();
#ifdef __x86_64__
  if (edl::detail::has_bfloat16_instructions()) return work.template operator()<norm::unit>();
#endif
  MESSAGE("by emulation alone: this processor has no bfloat16 instructions");
}

struct problem {
  edl::norm_chain c;
  std::size_t batch = 5, n = std::size_t(c.in.channels);
  std::vector<half> x = halves(numbers<float>(batch * c.in.size(), 1)),
                    dy = halves(numbers<float>(batch * c.out().size(), 2)),
                    more = halves(numbers<float>(batch * c.out().size(), 3));
  std::vector<float> all = numbers<float>(6 * n, 4);
  arrays of{&all[0], &all[n], &all[2 * n], &all[3 * n], &all[4 * n], &all[5 * n]};
};

std::vector<problem> problems() {
  std::vector<problem> all;
  for (int const channels : {2, 16, 32, 96})
    for (int const window : {1, 2, 3})
      for (bool const relu : {false, true}) {
        // More than one strip, and a last one that is not full.
        edl::norm_chain const c{.in = {window == 3 ? 9 : 8, 12, channels},
                                .after_relu = relu,
                                .f = relu ? activation::relu : activation::none,
                                .window = window,
                                .narrow = {true, true},
                                .narrow_more = true};
        if (norm::can_normalise(c, true)) all.push_back({c});
      }
  return all;
}

void close(std::vector<float> const& found, std::vector<float> const& expected, double error) {
  double scale = 1;
  for (float const e : expected) scale = std::max(scale, double(std::abs(e)));
  CHECK(greatest_difference(found, expected) < scale * error);
}

constexpr double rounding = 0x1p-8, of_sums = 1e-5;

}  // namespace

TEST_CASE("what is not bfloat16 on all sides, or fills no strip, is for the other loops") {
  edl::norm_chain const c{.in = {4, 4, 32}, .narrow = {true, true}, .narrow_more = true};
  auto const can = [&](auto change, bool adds = true) {
    auto one = c;
    change(one);
    return norm::can_normalise(one, adds);
  };
  CHECK(can([](auto&) {}));
  CHECK_FALSE(can([](auto& o) { o.narrow.in = false; }));
  CHECK_FALSE(can([](auto& o) { o.narrow.out = false; }));
  CHECK_FALSE(can([](auto& o) { o.narrow_more = false; }));
  CHECK(can([](auto& o) { o.narrow_more = false; }, false));
  CHECK_FALSE(can([](auto& o) { o.f = activation::gelu; }));
  CHECK_FALSE(can([](auto& o) { o.f = activation::silu; }));
  CHECK_FALSE(can([](auto& o) { o.in.channels = 48; }));
  CHECK(can([](auto& o) { o.in.channels = 16; }));
  CHECK_FALSE(can([](auto& o) { o.in = {3, 3, 16}; }));
  CHECK_FALSE(can([](auto& o) { o.in.channels = 16, o.window = 2; }));
  CHECK_FALSE(can([](auto& o) { o.window = 3; }, false));
  CHECK_FALSE(can([](auto& o) { o.in = {16, 16, 32}, o.window = 16; }, false));
}

TEST_CASE("moments are those of all rows, whatever the channels") {
  with_units([]<class Unit> {
    for (auto p : problems()) {
      CAPTURE(p.n);
      std::vector<float> mean(p.n), squares(p.n), expected_mean(p.n), expected(p.n);
      for (half& v : p.x) v = edl::to_bfloat16(edl::from_bfloat16(v) + 100);
      norm::moments<Unit>(p.c, 1, p.batch, p.x.data(), mean.data(), squares.data());
      for (std::size_t k = 0; k < p.n; ++k) {
        double sum = 0, square = 0, count = 0;
        for (std::size_t i = p.c.in.size() + k; i < p.x.size(); i += p.n)
          sum += edl::from_bfloat16(p.x[i]), ++count;
        for (std::size_t i = p.c.in.size() + k; i < p.x.size(); i += p.n)
          square += std::pow(edl::from_bfloat16(p.x[i]) - sum / count, 2);
        expected_mean[k] = float(sum / count), expected[k] = float(square);
      }
      close(mean, expected_mean, 1e-6);
      close(squares, expected, of_sums);
    }
  });
}

TEST_CASE("samples are normalised, added to, cut off and pooled as by the other loops") {
  with_units([]<class Unit> {
    for (auto const& p : problems())
      for (bool const adds : {false, true}) {
        if (adds && p.c.window > 1) continue;
        CAPTURE(p.n);
        CAPTURE(p.c.window);
        std::vector<half> y(p.dy.size());
        norm::normalise<Unit>(p.c, 0, 2, p.x.data(), p.of.scale, p.of.offset, adds ? p.more.data() : nullptr,
                              y.data());
        norm::normalise<Unit>(p.c, 2, p.batch, p.x.data(), p.of.scale, p.of.offset,
                              adds ? p.more.data() : nullptr, y.data());
        auto const x = floats(p.x), more = floats(p.more);
        std::vector<float> expected(y.size());
        edl::detail::by_activation(p.c.f, [&]<activation F> {
          edl::detail::normalise<float, F>(p.c, p.batch, x.data(), p.of.scale, p.of.offset,
                                           adds ? more.data() : nullptr, expected.data());
        });
        close(floats(y), expected, rounding);
      }
  });
}

TEST_CASE("gradients are those of the other loops") {
  with_units([]<class Unit> {
    for (auto const& p : problems()) {
      CAPTURE(p.n);
      CAPTURE(p.c.window);
      std::vector<float> sum(p.n), product(p.n), expected_sum(p.n), expected_product(p.n),
          expected(p.x.size());
      std::vector<half> dx(p.x.size());
      for (std::size_t const begin : {0, 2}) {
        std::size_t const end = begin == 0 ? 2 : p.batch;
        norm::sum_gradients<Unit>(p.c, begin, end, p.x.data(), p.dy.data(), p.of, sum.data(), product.data());
        norm::write_gradients<Unit>(p.c, begin, end, p.x.data(), p.dy.data(), p.of, dx.data());
      }
      auto const x = floats(p.x), dy = floats(p.dy);
      edl::detail::by_activation(p.c.f, [&]<activation F> {
        edl::detail::sum_gradients<float, F>(p.c, p.batch, x.data(), dy.data(), p.of, expected_sum.data(),
                                             expected_product.data());
        edl::detail::write_gradients<float, F>(p.c, p.batch, x.data(), dy.data(), p.of, expected.data());
      });
      close(sum, expected_sum, of_sums);
      close(product, expected_product, of_sums);
      close(floats(dx), expected, rounding);
    }
  });
}

TEST_CASE("a number that is none stays, in any place of a window") {
  with_units([]<class Unit> {
    edl::norm_chain const c{
        .in = {2, 2, 32}, .f = activation::relu, .window = 2, .narrow = {true, true}, .narrow_more = true};
    std::vector<float> const one(32, 1);
    for (std::size_t place = 0; place < 4; ++place)
      for (int const window : {1, 2}) {
        auto chain = c;
        chain.window = window;
        std::vector<half> x = halves(numbers<float>(c.in.size(), 1)), y(x.size());
        x[place * 32 + 7] = edl::to_bfloat16(std::numeric_limits<float>::quiet_NaN());
        norm::normalise<Unit>(chain, 0, 1, x.data(), one.data(), one.data(), nullptr, y.data());
        for (std::size_t i = 0; i < 4 * 32 / std::size_t(window * window); ++i)
          CHECK(std::isnan(edl::from_bfloat16(y[i])) == (i == (window == 1 ? place * 32 + 7 : 7)));
      }
  });
}

}  // namespace narrow_norm_test
