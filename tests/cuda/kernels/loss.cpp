// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cuda/kernels/board.hpp"
#include "edl/compute/nn/losses.hpp"

namespace loss_test {

namespace {

struct matrix {
  std::size_t rows, columns;
};

template <class Launch, class Loss, class Label>
void check(gpu& g, matrix m, std::vector<double> const& x, std::vector<Label> const& labels, Loss const& loss,
           Launch&& launch) {
  CAPTURE(m.rows);
  CAPTURE(m.columns);
  std::size_t const n = m.rows * m.columns;
  std::vector<double> gradients(n);
  double const wanted = loss(edl::shape{1, 1, int(m.columns)}, int(m.rows), edl::view<double>(x),
                             edl::view<Label>(labels), gradients);
  void *const outputs = g.put_activations(x), *const to = g.activations(n);
  auto* const truth = g.put(labels);
  auto* const mean = g.room<float>(1);
  auto* const scratch = g.room<float>(kernels::loss_scratch(g.q, m.rows, m.columns));
  launch(outputs, truth, to, mean, scratch);
  CHECK(close(g.get(mean, 1), std::vector<double>{wanted}, false, 1e-6));
  CHECK(close(g.get_activations(to, n), gradients, g.q.half, 1e-6, 1 / double(m.rows)));
  auto* const alone = g.room<float>(1);
  launch(outputs, truth, nullptr, alone, scratch);
  CHECK(close(g.get(alone, 1), g.get(mean, 1), false, 0));
}

}  // namespace

TEST_CASE("softmax cross entropy") {
  in_all_ways([](bool half) {
    gpu g(half);
    for (matrix const m : {matrix{1, 1}, matrix{64, 10}, matrix{2000, 10}, matrix{5000, 10}, matrix{37, 1000},
                           matrix{3, 50'000}}) {
      auto x = g.draw(m.rows * m.columns, 1);
      for (double& each : x) each *= 16;
      std::vector<std::int32_t> labels(m.rows);
      for (std::size_t i = 0; i < m.rows; ++i) labels[i] = std::int32_t(i * 7 % m.columns);
      for (float const smoothing : {0.0f, 0.2f})
        check(g, m, x, labels, edl::nn::softmax_cross_entropy{smoothing}, [&](auto... all) {
          kernels::softmax_cross_entropy(g.q, m.rows, m.columns, smoothing, all...);
        });
    }
  });
}

TEST_CASE("an infinitely unlikely class, and a NaN") {
  gpu g;
  double const infinite = std::numeric_limits<double>::infinity();
  check(g, {2, 3}, {1, -infinite, 2, 0, 1, 2}, std::vector<std::int32_t>{0, 2},
        edl::nn::softmax_cross_entropy{},
        [&](auto... all) { kernels::softmax_cross_entropy(g.q, 2, 3, 0, all...); });
  check(g, {2, 3}, {1, std::nan(""), 2, 0, 1, 2}, std::vector<std::int32_t>{0, 2},
        edl::nn::softmax_cross_entropy{},
        [&](auto... all) { kernels::softmax_cross_entropy(g.q, 2, 3, 0, all...); });
}

TEST_CASE("a certain prediction has a loss that is not zero") {
  gpu g;
  std::vector<double> const x{20, 0};
  check(g, {1, 2}, x, std::vector<std::int32_t>{0}, edl::nn::softmax_cross_entropy{},
        [&](auto... all) { kernels::softmax_cross_entropy(g.q, 1, 2, 0, all...); });
}

TEST_CASE("losses of quantities") {
  in_all_ways([](bool half) {
    gpu g(half);
    for (matrix const m : {matrix{1, 1}, matrix{64, 3}, matrix{70'000, 1}}) {
      auto x = g.draw(m.rows * m.columns, 1);
      auto labels = numbers<float>(x.size(), 2);
      check(g, m, x, labels, edl::nn::mean_squared_error{},
            [&](auto... all) { kernels::mean_squared_error(g.q, m.rows, m.columns, all...); });
      for (double& each : x) each *= 32;
      for (float& each : labels) each = (each + 1) / 2;
      for (float const smoothing : {0.0f, 0.2f})
        check(g, m, x, labels, edl::nn::sigmoid_cross_entropy{smoothing}, [&](auto... all) {
          kernels::sigmoid_cross_entropy(g.q, m.rows, m.columns, smoothing, all...);
        });
    }
  });
}

}  // namespace loss_test
