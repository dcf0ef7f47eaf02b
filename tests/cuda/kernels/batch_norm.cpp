// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cuda/kernels/board.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace batch_norm_test {

namespace {

/// A normalisation in double precision, on numbers that the GPU's activations can hold, and the same on the
/// GPU.
struct norms {
  gpu& g;
  edl::norm_chain c;
  int batch;
  std::size_t before = 0;
  double shift = 0;

  std::size_t n = std::size_t(c.in.channels), in = std::size_t(batch) * c.in.size(),
              out = std::size_t(batch) * c.out().size();
  std::vector<double> x = inputs(), gamma = g.draw(n, 2), beta = g.draw(n, 3), more = g.draw(in, 4),
                      dy = g.draw(out, 5), mean = g.draw(n, 6), variance = positive(),
                      y = std::vector<double>(out), kept = std::vector<double>(2 * n),
                      dx = std::vector<double>(in), dgamma = std::vector<double>(n),
                      dbeta = std::vector<double>(n);
  void *const device_x = g.put_activations(x, before), *const device_more = g.put_activations(more, before),
              *const device_y = g.activations(out, before), *const device_dy = g.put_activations(dy, before),
              *const device_dx = g.activations(in, before);
  float *const device_gamma = put(gamma), *const device_beta = put(beta), *const device_mean = put(mean),
               *const device_variance = put(variance), *const device_kept = g.room<float>(2 * n),
               *const device_dgamma = g.room<float>(n), *const device_dbeta = g.room<float>(n),
               *const scratch = g.room<float>(kernels::batch_norm_scratch(g.q, c, batch));
  edl::basic_cpu<double> cpu{};

  std::vector<double> inputs() const {
    auto v = g.draw(in, 1);
    for (double& each : v) {
      each += shift;
      if (c.after_relu && each < 0) each = 0;
    }
    return v;
  }
  std::vector<double> positive() const {
    auto v = g.draw(n, 7);
    for (double& each : v) each = std::abs(each) + 0.1;
    return v;
  }
  float* put(std::vector<double> const& v) const { return g.put(std::vector<float>(v.begin(), v.end())); }

  void train(bool adds, double error = 4e-6) {
    std::vector<double> const none;
    cpu.batch_norm_train(c, batch, 0.9, 1e-3, x, gamma, beta, adds ? more : none, mean, variance, y, kept);
    kernels::batch_norm_train(g.q, c, batch, 0.9f, 1e-3f, device_x, device_gamma, device_beta,
                              adds ? device_more : nullptr, device_mean, device_variance, device_y,
                              device_kept, {}, scratch);
    CHECK(close(g.get_activations(device_y, out), y, g.q.half, error));
    CHECK(close(g.get(device_mean, n), mean, false, 1e-6));
    CHECK(close(g.get(device_variance, n), variance, false, 1e-6));
    CHECK(close(g.get(device_kept, 2 * n), kept, false, 1e-6));
  }
  void evaluate(bool adds) {
    std::vector<double> const none;
    cpu.batch_norm_evaluate(c, batch, 1e-3, x, gamma, beta, adds ? more : none, mean, variance, y, kept);
    kernels::batch_norm_evaluate(g.q, c, batch, 1e-3f, device_x, device_gamma, device_beta,
                                 adds ? device_more : nullptr, device_mean, device_variance, device_y,
                                 device_kept);
    CHECK(close(g.get_activations(device_y, out), y, g.q.half));
    CHECK(close(g.get(device_kept, 2 * n), kept, false));
  }
  void again() {
    cpu.batch_norm_recompute(c, batch, x, gamma, beta, kept, y);
    kernels::batch_norm_recompute(g.q, c, batch, device_x, device_gamma, device_beta, device_kept, device_y);
    CHECK(close(g.get_activations(device_y, out), y, g.q.half, 4e-6));
  }
  void backward(bool through, bool inputs_too = true) {
    std::vector<double> none;
    cpu.batch_norm_backward(c, batch, through, x, gamma, beta, dy, kept, inputs_too ? dx : none, dgamma,
                            dbeta);
    kernels::batch_norm_backward(g.q, c, batch, through, device_x, device_gamma, device_beta, device_dy,
                                 device_kept, inputs_too ? device_dx : nullptr, device_dgamma, device_dbeta,
                                 scratch);
    CHECK(close(g.get(device_dgamma, n), dgamma, false, 4e-6));
    CHECK(close(g.get(device_dbeta, n), dbeta, false, 4e-6));
    if (inputs_too) CHECK(close(g.get_activations(device_dx, in), dx, g.q.half, 4e-6));
  }

  /// Without a gamma.
  void unscaled() {
    std::vector<double> none;
    cpu.batch_norm_train(c, batch, 0.9, 1e-3, x, none, beta, none, mean, variance, y, kept);
    cpu.batch_norm_backward(c, batch, true, x, none, beta, dy, kept, dx, none, dbeta);
    kernels::batch_norm_train(g.q, c, batch, 0.9f, 1e-3f, device_x, nullptr, device_beta, nullptr,
                              device_mean, device_variance, device_y, device_kept, {}, scratch);
    kernels::batch_norm_backward(g.q, c, batch, true, device_x, nullptr, device_beta, device_dy, device_kept,
                                 device_dx, nullptr, device_dbeta, scratch);
    CHECK(close(g.get_activations(device_y, out), y, g.q.half, 4e-6));
    CHECK(close(g.get(device_dbeta, n), dbeta, false, 4e-6));
    CHECK(close(g.get_activations(device_dx, in), dx, g.q.half, 4e-6));
  }
};

using enum edl::activation;

edl::norm_chain const chains[] = {
    {{4, 4, 16}},
    {{3, 5, 7}, false, relu},
    {{9, 9, 3}, true, none},
    {{6, 6, 64}, true, relu},
    {{2, 2, 200}, false, relu},
    {{1, 1, 1}},
    {{8, 8, 24}, false, none, 2},
    {{7, 5, 16}, true, relu, 2},
    {{7, 7, 5}, false, relu, 3},
    {{6, 4, 72}, false, relu, 2},
    {{5, 6, 40}, false, gelu, 1, 8},
    {{3, 3, 7}, true, gelu},
    {{5, 6, 40}, true, silu, 1, 8},
    {{3, 3, 7}, false, silu},
};

}  // namespace

TEST_CASE("a batch's statistics, and what follows from them") {
  in_all_ways([](bool half) {
    for (auto const& c : chains)
      for (int const processors : {1, 132})
        for (std::size_t const before : {0, 1}) {
          CAPTURE(c.in.height);
          CAPTURE(c.in.channels);
          CAPTURE(c.window);
          CAPTURE(before);
          gpu g(half, processors);
          norms m{g, c, 13, before};
          m.train(false);
          m.again();
          m.backward(true);
          m.backward(true, false);
          m.backward(false);
          m.evaluate(false);
          m.unscaled();
          if (c.window == 1 && !curved(c.f)) {
            m.evaluate(true);
            m.train(true);
          }
        }
  });
}

TEST_CASE("a batch of one sample, and a large one") {
  gpu g(false, 4);
  norms{g, {{3, 3, 4}}, 1}.train(false);
  norms large{g, {{16, 16, 8}, false, relu}, 64};
  large.train(false);
  large.backward(true);
}

TEST_CASE("a large mean costs no digits of the variance") {
  gpu g(false, 4);
  norms m{g, {{8, 8, 8}}, 32, 0, 4096};
  for (double& each : m.x) each = double(float(each));
  m.train(false, 1e-3);  // y itself is a difference of numbers near 4096 · scale
}

TEST_CASE("a NaN in the input is one in the result") {
  for (int const window : {1, 2}) {
    gpu g;
    edl::norm_chain const c{{2, 2, 4}, false, relu, window};
    norms m{g, c, 2};
    m.x[1] = std::numeric_limits<double>::quiet_NaN();
    auto* const x = g.put_activations(m.x);
    kernels::batch_norm_evaluate(g.q, c, 2, 1e-3f, x, m.device_gamma, m.device_beta, nullptr, m.device_mean,
                                 m.device_variance, m.device_y, m.device_kept);
    auto const y = g.get_activations(m.device_y, m.out);
    CHECK(std::isnan(y[1]));
    CHECK(std::count_if(y.begin(), y.end(), [](float v) { return std::isnan(v); }) == 1);
    kernels::batch_norm_train(g.q, c, 2, 0.9f, 1e-3f, x, m.device_gamma, m.device_beta, nullptr,
                              m.device_mean, m.device_variance, m.device_y, m.device_kept, {}, m.scratch);
    auto const trained = g.get_activations(m.device_y, m.out);
    CHECK(std::isnan(trained[1]));
    CHECK(!std::isnan(trained[0]));
  }
}

}  // namespace batch_norm_test
