// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace batch_norm_test {

namespace {

template <class T>
struct norm {
  edl::norm_chain chain;
  int batch;
  std::vector<T> x;
  std::size_t channels = std::size_t(chain.in.channels);
  std::vector<T> gamma = std::vector<T>(channels, T(1)), beta = std::vector<T>(channels), mean = beta,
                 variance = gamma, y = std::vector<T>(std::size_t(batch) * chain.out().size()),
                 kept = std::vector<T>(2 * channels), dx = x, dgamma = beta, dbeta = beta;
  edl::basic_cpu<T> cpu{};

  void train(double momentum = 0.99) {
    cpu.batch_norm_train(chain, batch, T(momentum), T(1e-3), x, gamma, beta, {}, mean, variance, y, kept);
  }
  void backward(std::vector<T> const& dy) {
    cpu.batch_norm_backward(chain, batch, true, x, gamma, beta, dy, kept, dx, dgamma, dbeta);
  }
};

}  // namespace

TEST_CASE("training normalises by the batch and moves the running values as Keras does") {
  norm<double> n{.chain = {{1, 1, 2}}, .batch = 4, .x = {1, 10, 2, 10, 3, 10, 6, 14}};
  n.mean = {100, 0};
  n.gamma = {2, 1};
  n.beta = {0, 5};
  n.train(0.9);
  CHECK(n.mean[0] == doctest::Approx(0.9 * 100 + 0.1 * 3));
  CHECK(n.mean[1] == doctest::Approx(0.1 * 11));
  CHECK(n.variance[0] == doctest::Approx(0.9 + 0.1 * 3.5));  // biased: (4 + 1 + 0 + 9) / 4
  CHECK(n.variance[1] == doctest::Approx(0.9 + 0.1 * 3));
  CHECK(n.y[6] == doctest::Approx(2 * 3 / std::sqrt(3.5 + 1e-3)));
  CHECK(n.y[7] == doctest::Approx(5 + 3 / std::sqrt(3 + 1e-3)));
}

TEST_CASE("evaluation takes the running values and leaves them") {
  norm<double> n{.chain = {{1, 1, 1}}, .batch = 2, .x = {3, 5}};
  n.mean = {1};
  n.variance = {4};
  n.cpu.batch_norm_evaluate(n.chain, 2, 0.0, n.x, n.gamma, n.beta, {}, n.mean, n.variance, n.y, n.kept);
  CHECK(n.y[0] == doctest::Approx(1));
  CHECK(n.y[1] == doctest::Approx(2));
  CHECK(n.mean[0] == 1);
  CHECK(n.variance[0] == 4);
}

TEST_CASE("a large mean costs no digits of the variance, whoever sums") {
  for (int threads : {1, 3}) {
    norm<float> n{.chain = {{50, 25, 3}}, .batch = 4, .x = numbers<float>(15000, 1)};
    n.cpu = edl::basic_cpu<float>({.threads = threads});
    for (auto& v : n.x) v = 1000 + v;
    n.train(0);
    for (std::size_t c = 0; c < 3; ++c) {
      double mean = 0, variance = 0;
      for (std::size_t r = 0; r < 5000; ++r) mean += double(n.x[3 * r + c]) / 5000;
      for (std::size_t r = 0; r < 5000; ++r)
        variance += (double(n.x[3 * r + c]) - mean) * (double(n.x[3 * r + c]) - mean) / 5000;
      CHECK(double(n.mean[c]) == doctest::Approx(mean).epsilon(1e-6));
      CHECK(double(n.variance[c]) == doctest::Approx(variance).epsilon(1e-3));
    }
  }
}

TEST_CASE("many channels") {
  norm<double> n{.chain = {{1, 1, 1500}}, .batch = 70, .x = numbers<double>(70 * 1500, 2)};
  n.train();
  double most_mean = 0, most_variance = 0;
  for (std::size_t c = 0; c < n.channels; ++c) {
    double mean = 0, square = 0;
    for (std::size_t r = 0; r < 70; ++r) {
      mean += n.y[r * n.channels + c] / 70;
      square += n.y[r * n.channels + c] * n.y[r * n.channels + c] / 70;
    }
    most_mean = std::max(most_mean, std::abs(mean));
    most_variance = std::max(most_variance, std::abs(square - 1));
  }
  CHECK(most_mean < 1e-12);
  CHECK(most_variance < 0.02);  // epsilon's share
}

TEST_CASE("a chain is what its parts are one after the other, on any number of threads") {
  for (int channels : {1, 3, 8, 21})
    for (bool relu : {false, true})
      for (int window : {1, 2, 3})
        for (int threads : {1, 2}) {
          CAPTURE(channels);
          CAPTURE(relu);
          CAPTURE(window);
          CAPTURE(threads);
          edl::shape const in{7, 6, channels};
          auto const x = numbers<double>(5 * in.size(), 1);
          norm<double> plain{.chain = {in}, .batch = 5, .x = x},
              whole{.chain = {in, false, relu ? edl::activation::relu : edl::activation::none, window},
                    .batch = 5,
                    .x = x};
          plain.gamma = whole.gamma = numbers<double>(std::size_t(channels), 2);
          plain.beta = whole.beta = numbers<double>(std::size_t(channels), 3);
          whole.cpu = edl::basic_cpu<double>({.threads = threads});
          plain.train(), whole.train();
          edl::shape const out = whole.chain.out();
          auto const dy = numbers<double>(whole.y.size(), 4);
          // By the definition: where each result comes from, and with it what the gradient is.
          std::vector<double> expected(whole.y.size(), -1e300), dz(x.size());
          std::vector<std::size_t> from(whole.y.size());
          auto const c = std::size_t(channels);
          for (std::size_t s = 0; s < 5; ++s)
            for (std::size_t i = 0; i < std::size_t(in.height); ++i)
              for (std::size_t j = 0; j < std::size_t(in.width); ++j)
                for (std::size_t k = 0; k < c; ++k) {
                  std::size_t const a = i / std::size_t(window), b = j / std::size_t(window);
                  if (a >= std::size_t(out.height) || b >= std::size_t(out.width)) continue;
                  std::size_t const at = ((s * 7 + i) * 6 + j) * c + k,
                                    to =
                                        ((s * std::size_t(out.height) + a) * std::size_t(out.width) + b) * c +
                                        k;
                  double const z = relu ? std::max(plain.y[at], 0.0) : plain.y[at];
                  if (z > expected[to]) expected[to] = z, from[to] = at;
                }
          for (std::size_t i = 0; i < dy.size(); ++i)
            if (!relu || expected[i] > 0) dz[from[i]] = dy[i];
          CHECK(greatest_difference(whole.y, expected) < 1e-12);
          plain.backward(dz), whole.backward(dy);
          CHECK(greatest_difference(whole.dx, plain.dx) < 1e-12);
          CHECK(greatest_difference(whole.dgamma, plain.dgamma) < 1e-12);
          CHECK(greatest_difference(whole.dbeta, plain.dbeta) < 1e-12);
          // What a relu left: its gradient is taken along.
          whole.chain.after_relu = true;
          whole.backward(dy);
          for (std::size_t i = 0; i < x.size(); ++i) plain.dx[i] *= x[i] > 0;
          CHECK(greatest_difference(whole.dx, plain.dx) < 1e-12);
        }
}

TEST_CASE("a number that is none is not hidden by pooling") {
  norm<float> n{
      .chain = {{2, 4, 1}, false, edl::activation::none, 2}, .batch = 1, .x = {1, 2, 3, 4, 5, 6, 7, 8}};
  n.x[1] = std::numeric_limits<float>::quiet_NaN();
  n.cpu.batch_norm_evaluate(n.chain, 1, 0.f, n.x, n.gamma, n.beta, {}, n.mean, n.variance, n.y, n.kept);
  CHECK(std::isnan(n.y[0]));
  CHECK(n.y[1] == 8);
}

TEST_CASE("gelu or silu, beta with a gain, and no gamma") {
  auto const value_and_slope = [](edl::activation f, double z) {
    double const below =
        f == edl::activation::gelu ? std::erfc(-z / std::sqrt(2.0)) / 2 : 1 / (1 + std::exp(-z));
    double const rises = f == edl::activation::gelu ? std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0))
                                                    : below * (1 - below);
    return std::pair(z * below, below + z * rises);
  };
  for (int i = 0; i < 8; ++i) {
    int const channels = std::array{1, 3, 8, 21}[std::size_t(i) / 2];
    auto const f = i % 2 ? edl::activation::gelu : edl::activation::silu;
    CAPTURE(channels);
    CAPTURE(int(f));
    auto const n = std::size_t(channels);
    edl::shape const in{4, 3, channels};
    auto const x = numbers<double>(5 * in.size(), 1), dy = numbers<double>(x.size(), 4);
    norm<double> plain{.chain = {in}, .batch = 5, .x = x},
        whole{.chain = {.in = in, .f = f, .shift_gain = 4}, .batch = 5, .x = x};
    whole.beta = numbers<double>(n, 3);
    plain.beta = whole.beta;
    for (double& b : plain.beta) b *= 4;
    whole.gamma.clear(), whole.dgamma.clear();
    plain.train(), whole.train();
    std::vector<double> z(x.size()), expected(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      auto const [value, slope] = value_and_slope(f, plain.y[k]);
      expected[k] = value;
      z[k] = dy[k] * slope;
    }
    CHECK(greatest_difference(whole.y, expected) < 1e-12);
    plain.backward(z), whole.backward(dy);
    for (double& b : plain.dbeta) b *= 4;
    CHECK(greatest_difference(whole.dx, plain.dx) < 1e-12);
    CHECK(greatest_difference(whole.dbeta, plain.dbeta) < 1e-11);
    std::vector<double> again(x.size());
    whole.cpu.batch_norm_recompute(whole.chain, 5, x, whole.gamma, whole.beta, whole.kept, again);
    CHECK(again == whole.y);
  }
}

TEST_CASE("samples may be bfloat16 on either side, in any chain, on any number of threads") {
  using edl::activation;
  for (auto const f : {activation::none, activation::relu, activation::gelu, activation::silu})
    for (int const window : {1, 2})
      for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}})
        for (int const channels : {2, 20, 32})
          for (int const threads : {1, 3}) {
            if (curved(f) && window > 1) continue;
            CAPTURE(int(f));
            CAPTURE(window);
            CAPTURE(sides.in);
            CAPTURE(sides.out);
            constexpr int batch = 7;
            // More than one part, and a row that fills no window, or what a processor may have own loops for.
            edl::shape const in{channels == 32 ? 12 : 11, 14, channels};
            edl::norm_chain const wide{.in = in, .f = f, .window = window};
            auto narrow = wide;
            narrow.narrow = sides;
            edl::cpu cpu({.threads = threads});
            auto const c = std::size_t(channels);
            auto const x = rounded(numbers<float>(batch * in.size(), 1)), gamma = numbers<float>(c, 2),
                       beta = numbers<float>(c, 3),
                       dy = rounded(numbers<float>(batch * wide.out().size(), 4));
            auto const course = [&](edl::norm_chain const& chain) {
              auto const on = chain.narrow;
              auto const from = as_narrow(x, on.in), above = as_narrow(dy, on.out);
              std::vector<float> mean(c), variance(c), kept(2 * c), y(above.size()), again(above.size()),
                  dx(from.size()), dgamma(c), dbeta(c);
              cpu.batch_norm_train(chain, batch, 0.9f, 1e-3f, from, gamma, beta, {}, mean, variance, y, kept);
              cpu.batch_norm_recompute(chain, batch, from, gamma, beta, kept, again);
              CHECK(again == y);
              cpu.batch_norm_backward(chain, batch, true, from, gamma, beta, above, kept, dx, dgamma, dbeta);
              return std::vector{
                  as_wide(y, dy.size(), on.out), as_wide(dx, x.size(), on.in), dgamma, dbeta, mean, variance};
            };
            auto const expected = course(wide), found = course(narrow);
            for (std::size_t i = 0; i < expected.size(); ++i) {
              CAPTURE(i);
              bool const rounds = (i == 0 && sides.out) || (i == 1 && sides.in);
              double scale = 1;
              for (float const e : expected[i]) scale = std::max(scale, double(std::abs(e)));
              CHECK(greatest_difference(found[i], expected[i]) < scale * (rounds ? 0x1p-8 : 1e-5));
            }
          }
}

TEST_CASE("what is added to a normalised sample may be bfloat16 as well") {
  constexpr int batch = 3;
  edl::norm_chain chain{.in = {5, 4, 6}, .f = edl::activation::relu};
  edl::cpu cpu;
  auto const x = numbers<float>(batch * chain.in.size(), 1), more = rounded(numbers<float>(x.size(), 2));
  std::vector<float> const gamma(6, 1.5f), beta(6, 0.1f), variance(6, 1);
  std::vector<float> mean(6), kept(12), y(x.size()), narrow(x.size());
  cpu.batch_norm_evaluate(chain, batch, 1e-3f, x, gamma, beta, more, mean, variance, y, kept);
  chain.narrow_more = true;
  cpu.batch_norm_evaluate(chain, batch, 1e-3f, x, gamma, beta, as_narrow(more), mean, variance, narrow, kept);
  CHECK(narrow == y);
}

}  // namespace batch_norm_test
