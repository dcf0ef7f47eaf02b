// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/recurrent.hpp"

#include <cmath>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace recurrent_test {

namespace nn = edl::nn;

namespace {

using vector = std::vector<double>;

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

/// x W + h R + b for the columns of one step, the product and the rest apart.
struct sums {
  vector inputs, product;

  sums(vector const& parameters, std::size_t c, std::size_t n, std::size_t gates, double const* x,
       vector const& h, bool two_biases)
      : inputs(gates * n), product(gates * n) {
    double const *const w = parameters.data(), *const r = w + c * gates * n, *const b = r + n * gates * n;
    for (std::size_t k = 0; k < gates * n; ++k) {
      inputs[k] = b[k];
      product[k] = two_biases ? b[gates * n + k] : 0;
      for (std::size_t i = 0; i < c; ++i) inputs[k] += x[i] * w[i * gates * n + k];
      for (std::size_t i = 0; i < n; ++i) product[k] += h[i] * r[i * gates * n + k];
    }
  }
};

/// All results of an lstm by its formula, step by step.
vector run(nn::lstm const& l, std::size_t batch, std::size_t steps, std::size_t c, vector const& x,
           vector const& parameters) {
  auto const n = std::size_t(l.units);
  vector y(batch * steps * n);
  for (std::size_t s = 0; s < batch; ++s) {
    vector h(n), cell(n);
    for (std::size_t turn = 0; turn < steps; ++turn) {
      std::size_t const t = l.reverse ? steps - 1 - turn : turn;
      sums const a(parameters, c, n, 4, x.data() + (s * steps + t) * c, h, false);
      for (std::size_t k = 0; k < n; ++k) {
        auto const z = [&](std::size_t gate) { return a.inputs[gate * n + k] + a.product[gate * n + k]; };
        cell[k] = sigma(z(1) + double(l.forget_bias)) * cell[k] + sigma(z(0)) * std::tanh(z(2));
        y[(s * steps + t) * n + k] = h[k] = sigma(z(3)) * std::tanh(cell[k]);
      }
    }
  }
  return y;
}

vector run(nn::gru const& l, std::size_t batch, std::size_t steps, std::size_t c, vector const& x,
           vector const& parameters) {
  auto const n = std::size_t(l.units);
  vector y(batch * steps * n);
  for (std::size_t s = 0; s < batch; ++s) {
    vector h(n);
    for (std::size_t turn = 0; turn < steps; ++turn) {
      std::size_t const t = l.reverse ? steps - 1 - turn : turn;
      sums const a(parameters, c, n, 3, x.data() + (s * steps + t) * c, h, true);
      for (std::size_t k = 0; k < n; ++k) {
        double const z = sigma(a.inputs[k] + a.product[k]), r = sigma(a.inputs[n + k] + a.product[n + k]);
        double const candidate = std::tanh(a.inputs[2 * n + k] + r * a.product[2 * n + k]);
        y[(s * steps + t) * n + k] = h[k] = z * h[k] + (1 - z) * candidate;
      }
    }
  }
  return y;
}

template <class L>
void follows_its_formula() {
  for (bool const reverse : {false, true})
    for (int const units : {1, 4, 19}) {
      L l{.units = units, .reverse = reverse};
      lone_layer<L> h{.l = l, .in = {1, 5, 3}, .batch = 2};
      h.forward();
      auto const wanted = run(l, 2, 5, 3, h.x, h.parameters);
      CHECK(greatest_difference(h.y, wanted) < 1e-13);
      l.last = true;
      lone_layer<L> end{.l = l, .in = {1, 5, 3}, .batch = 2};
      end.forward();
      CHECK(end.out == edl::shape{1, 1, units});
      auto const n = std::size_t(units), step = std::size_t(reverse ? 0 : 4);
      for (std::size_t s = 0; s < 2; ++s)
        for (std::size_t k = 0; k < n; ++k)
          CHECK(std::abs(end.y[s * n + k] - wanted[(s * 5 + step) * n + k]) < 1e-13);
    }
}

}  // namespace

TEST_CASE("an lstm follows its formula") { follows_its_formula<nn::lstm>(); }

TEST_CASE("a gru follows its formula") { follows_its_formula<nn::gru>(); }

TEST_CASE("in both directions, a place knows what comes before and behind it") {
  auto const both = nn::bidirectional(nn::lstm{.units = 3});
  lone_layer<std::remove_cvref_t<decltype(both)>> h{.l = both, .in = {1, 4, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 4, 6});
  h.forward();
  auto const before = h.y;
  h.x[2 * 2] += 1;  // place 2
  h.forward();
  CHECK(std::equal(before.begin() + 6, before.begin() + 9, h.y.begin() + 6));  // place 1, forwards
  CHECK(h.y[9] != before[9]);                                                  // and backwards
  CHECK(h.y[18] != before[18]);                                                // place 3, forwards
  CHECK(std::equal(before.begin() + 21, before.end(), h.y.begin() + 21));      // and backwards
}

}  // namespace recurrent_test
