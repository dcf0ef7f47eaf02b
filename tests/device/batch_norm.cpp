// SPDX-License-Identifier: Apache-2.0
#include "edl/device/cpu/batch_norm.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/draw.hpp"

namespace {

template <class T>
struct norm {
  std::size_t rows, channels;
  std::vector<T> x, gamma = std::vector<T>(channels, T(1)), beta = std::vector<T>(channels), mean = beta,
                    variance = gamma, y = std::vector<T>(rows * channels),
                    kept = std::vector<T>(2 * channels);
  edl::basic_cpu<T> cpu;

  void train(double momentum = 0.99) {
    batch_norm_train(cpu, rows, channels, T(momentum), T(1e-3), x, gamma, beta, mean, variance, y, kept);
  }
};

}  // namespace

TEST_CASE("training normalises by the batch and moves the running values as Keras does") {
  norm<double> n{.rows = 4, .channels = 2, .x = {1, 10, 2, 10, 3, 10, 6, 14}};
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
  norm<double> n{.rows = 2, .channels = 1, .x = {3, 5}};
  n.mean = {1};
  n.variance = {4};
  batch_norm_evaluate(n.cpu, 2, 1, 0.0, n.x, n.gamma, n.beta, n.mean, n.variance, n.y, n.kept);
  CHECK(n.y[0] == doctest::Approx(1));
  CHECK(n.y[1] == doctest::Approx(2));
  CHECK(n.mean[0] == 1);
  CHECK(n.variance[0] == 4);
}

TEST_CASE("a large mean costs no digits of the variance") {
  norm<float> n{.rows = 5000, .channels = 3, .x = numbers<float>(15000, 1)};
  std::vector<float> plain(n.x);
  for (auto& v : n.x) v = 1000 + v;
  n.train(0);
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0, variance = 0;
    for (std::size_t r = 0; r < n.rows; ++r) mean += double(n.x[3 * r + c]) / double(n.rows);
    for (std::size_t r = 0; r < n.rows; ++r)
      variance += (double(n.x[3 * r + c]) - mean) * (double(n.x[3 * r + c]) - mean) / double(n.rows);
    CHECK(double(n.mean[c]) == doctest::Approx(mean).epsilon(1e-6));
    CHECK(double(n.variance[c]) == doctest::Approx(variance).epsilon(1e-3));
  }
}

TEST_CASE("many channels, in parts") {
  norm<double> n{.rows = 70, .channels = 1500, .x = numbers<double>(70 * 1500, 2)};
  n.train();
  double most_mean = 0, most_variance = 0;
  for (std::size_t c = 0; c < n.channels; ++c) {
    double mean = 0, square = 0;
    for (std::size_t r = 0; r < n.rows; ++r) {
      mean += n.y[r * n.channels + c] / 70;
      square += n.y[r * n.channels + c] * n.y[r * n.channels + c] / 70;
    }
    most_mean = std::max(most_mean, std::abs(mean));
    most_variance = std::max(most_variance, std::abs(square - 1));
  }
  CHECK(most_mean < 1e-12);
  CHECK(most_variance < 0.02);  // epsilon's share
}
