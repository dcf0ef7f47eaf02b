// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/rules.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compute/optim/check.hpp"
#include "compute/optim/whole.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/on_accelerator.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/error.hpp"

namespace sgd_test {

using edl::sgd;

TEST_CASE("sgd: the values of trajectories.py") {
  check::pinned(sgd{.learning_rate = 0.1f}, {0.7910403661138111, -1.7321729414981457, 0.4345441574672416});
  check::pinned(sgd{.learning_rate = 0.1f, .weight_decay = 0.01f},
                {0.7865267108628557, -1.7231530892139457, 0.43228926897836883});
  check::pinned(sgd{.learning_rate = 0.1f, .momentum = 0.9f},
                {0.6126572808966861, -1.354850206055099, 0.3400079079563921});
  check::pinned(sgd{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true},
                {0.4627703452881655, -1.1881160033041045, 0.2996547539533039});
}

TEST_CASE("sgd: momentum is the sum of past gradients, each weighed by a power") {
  for (float mu : {0.0f, 0.5f, 0.9f})
    for (bool nesterov : {false, true})
      for (float decay : {0.0f, 0.1f}) {
        auto const velocity = [mu](std::vector<double> const& g) {
          double v = 0;
          for (std::size_t s = 0; s < g.size(); ++s)
            v += std::pow(double(mu), double(g.size() - 1 - s)) * g[s];
          return v;
        };
        sgd const o{.momentum = mu, .nesterov = nesterov, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) {
          return nesterov ? g.back() + double(mu) * velocity(g) : velocity(g);
        });
      }
}

TEST_CASE("sgd: cuts and restarts change no bit") {
  check::same_however_cut(sgd{});
  check::same_however_cut(sgd{.weight_decay = 0.01f});
  check::same_however_cut(sgd{.momentum = 0.9f});
  check::same_however_cut(sgd{.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f});
}

TEST_CASE("sgd: remembers only what it needs, and the defaults are Keras'") {
  CHECK(sgd{}.slots().size() == 0);
  REQUIRE(sgd{.momentum = 0.5f}.slots().size() == 1);
  CHECK(sgd{.momentum = 0.5f}.slots()[0].name == "momentum");
  CHECK(sgd{.momentum = 0.5f}.slots()[0].initial == 0);
  CHECK(sgd{}.learning_rate == 0.01f);
}

TEST_CASE("sgd: nothing to do") {
  sgd{}.apply(std::span<float>{}, edl::view<float>{}, std::span<std::span<float> const>{}, 0.1f, 0);
}

}  // namespace sgd_test

namespace adagrad_test {

using edl::adagrad;

TEST_CASE("adagrad: the values of trajectories.py") {
  check::pinned(adagrad{.learning_rate = 0.5f},
                {0.41397899218765094, -0.8341490008432308, -0.014599658333999344});
}

TEST_CASE("adagrad: the last gradient by the root of the sum of squares") {
  for (float initial : {0.0f, 0.1f, 2.0f})
    for (float decay : {0.0f, 0.1f})
      check::formula(adagrad{.initial_accumulator = initial, .epsilon = 1e-3f, .weight_decay = decay},
                     [initial](std::vector<double> const& g) {
                       double squares = double(initial);
                       for (double each : g) squares += each * each;
                       return g.back() / (std::sqrt(squares) + double(1e-3f));
                     });
}

TEST_CASE("adagrad: cuts and restarts change no bit") {
  check::same_however_cut(adagrad{});
  check::same_however_cut(adagrad{.initial_accumulator = 0, .weight_decay = 0.01f});
}

TEST_CASE("adagrad: the accumulator starts as it is told") {
  REQUIRE(adagrad{}.slots().size() == 1);
  CHECK(adagrad{}.slots()[0].name == "accumulator");
  CHECK(adagrad{}.slots()[0].initial == 0.1f);
  CHECK(adagrad{.initial_accumulator = 0.5f}.slots()[0].initial == 0.5f);
  CHECK(adagrad{}.learning_rate == 0.001f);
}

}  // namespace adagrad_test

namespace rmsprop_test {

using edl::rmsprop;

namespace {

/// The step after these gradients, all means by explicit sums.
double by_sums(rmsprop const& o, std::vector<double> const& g) {
  double const rho = double(o.rho);
  double buffer = 0;
  for (std::size_t t = 1; t <= g.size(); ++t) {
    double square = 0, mean = 0;
    for (std::size_t s = 0; s < t; ++s) {
      double const weight = (1 - rho) * std::pow(rho, double(t - 1 - s));
      square += weight * g[s] * g[s];
      mean += weight * g[s];
    }
    if (o.centered) square -= mean * mean;
    buffer = double(o.momentum) * buffer + g[t - 1] / (std::sqrt(square) + double(o.epsilon));
  }
  return buffer;
}

}  // namespace

TEST_CASE("rmsprop: the values of trajectories.py") {
  check::pinned(rmsprop{.learning_rate = 0.05f},
                {0.7783629401052947, -1.534953446825992, 0.10778831749839131});
  check::pinned(rmsprop{.learning_rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f},
                {0.38407521251458504, -0.7110652094470857, -0.4260795780842104});
  check::pinned(rmsprop{.learning_rate = 0.05f, .centered = true},
                {0.7601968722914771, -1.4838627692880069, 0.07859315972271709});
}

TEST_CASE("rmsprop: the formula, with and without momentum, center and weight decay") {
  for (bool const centered : {false, true})
    for (float const momentum : {0.0f, 0.5f})
      for (float const decay : {0.0f, 0.1f}) {
        rmsprop const o{.momentum = momentum, .epsilon = 1e-2f, .centered = centered, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) { return by_sums(o, g); });
      }
}

TEST_CASE("rmsprop: a gradient that never changes is no root of something below 0") {
  check::memory<float, rmsprop> m(rmsprop{.rho = 0.5f, .centered = true}, {1, 1});
  for (int t = 0; t < 200; ++t) m.apply({0.1f, 1e-3f}, 1e-8f);
  for (float const w : m.weights) CHECK(std::isfinite(w));
}

TEST_CASE("rmsprop: cuts and restarts change no bit") {
  check::same_however_cut(rmsprop{});
  check::same_however_cut(rmsprop{.momentum = 0.9f, .weight_decay = 0.01f});
  check::same_however_cut(rmsprop{.momentum = 0.9f, .centered = true});
}

TEST_CASE("rmsprop: slots") {
  CHECK(rmsprop{}.slots().size() == 1);
  CHECK(rmsprop{.centered = true}.slots()[1].name == "mean");
  CHECK(rmsprop{.momentum = 0.9f}.slots()[1].name == "momentum");
  REQUIRE(rmsprop{.momentum = 0.9f, .centered = true}.slots().size() == 3);
  CHECK(rmsprop{.momentum = 0.9f, .centered = true}.slots()[2].name == "momentum");
}

}  // namespace rmsprop_test

namespace adam_test {

using edl::adam;

namespace {

/// Algorithm 1 of the paper: means by explicit sums, both corrected. Its ε stands on the corrected root, so
/// it is ours divided by √(1 − β₂ᵗ).
double by_the_paper(adam const& o, std::vector<double> const& g) {
  double const b1 = double(o.beta_1), b2 = double(o.beta_2), t = double(g.size());
  double mean = 0, square = 0, largest = 0;
  for (std::size_t s = 0; s < g.size(); ++s) mean += (1 - b1) * std::pow(b1, t - 1 - double(s)) * g[s];
  for (std::size_t until = o.amsgrad ? 1 : g.size(); until <= g.size(); ++until) {
    square = 0;
    for (std::size_t s = 0; s < until; ++s)
      square += (1 - b2) * std::pow(b2, double(until - 1 - s)) * g[s] * g[s];
    largest = std::max(largest, square);
  }
  double const mean_hat = mean / (1 - std::pow(b1, t)), square_hat = largest / (1 - std::pow(b2, t));
  return mean_hat / (std::sqrt(square_hat) + double(o.epsilon) / std::sqrt(1 - std::pow(b2, t)));
}

}  // namespace

TEST_CASE("adam: the values of trajectories.py") {
  check::pinned(adam{.learning_rate = 0.05f}, {0.8877247456599633, -1.7717343636462417, 0.2711033141509166});
  check::pinned(adam{.learning_rate = 0.05f, .weight_decay = 0.01f},
                {0.8854046313191007, -1.7670156245114128, 0.27013816906488214});
  check::pinned(adam{.learning_rate = 0.05f, .beta_2 = 0.5f, .amsgrad = true},
                {0.8979036399068266, -1.792483034986431, 0.28556228029235026});
}

TEST_CASE("adam: the paper's algorithm, with and without the largest square") {
  for (bool amsgrad : {false, true})
    for (float b2 : {0.5f, 0.999f})
      for (float decay : {0.0f, 0.1f}) {
        adam const o{.beta_2 = b2, .epsilon = 1e-3f, .amsgrad = amsgrad, .weight_decay = decay};
        check::formula(o, [&](std::vector<double> const& g) { return by_the_paper(o, g); });
      }
}

TEST_CASE("adam: the first step is the rate, whatever the gradient") {
  check::memory<double, adam> m(adam{.epsilon = 0}, {0, 0, 0});
  m.apply({1e-6, -3, 1e6}, 0.25);
  CHECK(m.weights[0] == doctest::Approx(-0.25));
  CHECK(m.weights[1] == doctest::Approx(0.25));
  CHECK(m.weights[2] == doctest::Approx(-0.25));
}

TEST_CASE("adam: a parameter without a gradient stays, at any step") {
  check::memory<float, adam> m(adam{}, {1, -2});
  m.apply({0, 0}, 0.1f);
  m.step = 1'000'000'000'000;
  m.apply({0, 0}, 0.1f);
  CHECK(m.weights == std::vector<float>{1, -2});
}

TEST_CASE("adam: cuts and restarts change no bit") {
  check::same_however_cut(adam{});
  check::same_however_cut(adam{.weight_decay = 0.01f});
  check::same_however_cut(adam{.beta_2 = 0.5f, .amsgrad = true});
}

TEST_CASE("adam: slots") {
  CHECK(adam{}.slots().size() == 2);
  REQUIRE(adam{.amsgrad = true}.slots().size() == 3);
  CHECK(adam{.amsgrad = true}.slots()[0].name == "m");
  CHECK(adam{.amsgrad = true}.slots()[1].name == "v");
  CHECK(adam{.amsgrad = true}.slots()[2].name == "v_max");
  CHECK(adam{}.learning_rate == 0.001f);
}

}  // namespace adam_test

namespace adamw_test {

namespace {

// What docs/models.md says of GPUs.
static_assert(edl::optimizes_on_accelerator<edl::adamw> && edl::optimizes_on_accelerator<edl::adam>);
static_assert(!edl::optimizes_on_accelerator<edl::lion> && !edl::optimizes_on_accelerator<edl::rmsprop>);

}  // namespace

TEST_CASE("adamw is adam with weight decay, bit by bit") {
  for (bool const amsgrad : {false, true}) {
    check::memory<float, edl::adamw> a(edl::adamw{.amsgrad = amsgrad}, check::normal<float>(100, 1, 0));
    check::memory<float, edl::adam> b(edl::adam{.amsgrad = amsgrad, .weight_decay = 0.004f}, a.weights);
    check::memory<float, edl::adam> without(edl::adam{.amsgrad = amsgrad}, a.weights);
    for (std::uint64_t step = 0; step < 20; ++step) {
      auto const g = check::normal<float>(100, 2, step);
      a.apply(g, 0.1f);
      b.apply(g, 0.1f);
      without.apply(g, 0.1f);
    }
    CHECK(check::same_bits(a.weights, b.weights));
    CHECK(!check::same_bits(a.weights, without.weights));
  }
}

TEST_CASE("adamw: slots, and the same however it is cut") {
  CHECK(edl::adamw{}.slots().size() == 2);
  CHECK(edl::adamw{.amsgrad = true}.slots()[2].name == "v_max");
  CHECK(edl::optimizer<edl::adamw>);
  check::same_however_cut(edl::adamw{});
}

}  // namespace adamw_test

namespace lamb_test {

using edl::lamb;

namespace {

double norm(std::vector<double> const& of) {
  return std::sqrt(std::inner_product(of.begin(), of.end(), of.begin(), 0.0));
}

/// Algorithm 2 of the paper, as it stands there, for one variable.
struct paper {
  double beta_1, beta_2, epsilon, decay;
  std::vector<double> w;
  std::vector<double> m = std::vector<double>(w.size()), v = m;
  int t = 0;

  void step(std::vector<double> const& g, double rate) {
    ++t;
    std::vector<double> u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
      v[i] = beta_2 * v[i] + (1 - beta_2) * g[i] * g[i];
      double const mean = m[i] / (1 - std::pow(beta_1, t)), square = v[i] / (1 - std::pow(beta_2, t));
      u[i] = mean / (std::sqrt(square) + epsilon) + decay * w[i];
    }
    double const ratio = norm(w) / norm(u);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * u[i];
  }
};

template <class T>
double furthest(std::vector<T> const& a, std::vector<double> const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

}  // namespace

static_assert(edl::whole_optimizer<lamb> && edl::whole_optimizer<edl::lookahead<lamb>>);
static_assert(!edl::whole_optimizer<edl::adam> && !edl::whole_optimizer<edl::lookahead<edl::adam>>);

TEST_CASE("lamb: the paper's algorithm, in double and in float") {
  for (float const decay : {0.0f, 0.1f}) {
    lamb const o{.weight_decay = decay};
    std::size_t const n = 37;
    check::memory<double, lamb> wide(o, check::normal<double>(n, 1, 0));
    check::memory<float, lamb> narrow(o, {wide.weights.begin(), wide.weights.end()});
    paper p{double(o.beta_1), double(o.beta_2), double(o.epsilon), double(decay), wide.weights};
    for (std::uint64_t t = 0; t < 60; ++t) {
      auto const g = check::normal<double>(n, 2, t);
      double const rate = double(float(0.05 / (1 + 0.1 * double(t))));
      whole::step(wide, g, rate);
      whole::step(narrow, std::vector<float>(g.begin(), g.end()), float(rate));
      p.step(g, rate);
      REQUIRE(furthest(wide.weights, p.w) < 1e-11);
      REQUIRE(furthest(narrow.weights, p.w) < 2e-5);
    }
    CHECK(furthest(check::normal<double>(n, 1, 0), p.w) > 0.1);
  }
}

TEST_CASE("lamb: a step is a share of the variable's norm, which is the rate") {
  for (double const size : {1e-3, 1.0, 1e4}) {
    check::memory<double, lamb> m(lamb{}, std::vector<double>(100, size));
    whole::step(m, check::normal<double>(100, 1, 0), 0.125);
    double moved = 0;
    for (double const w : m.weights) moved += (w - size) * (w - size);
    CHECK(std::sqrt(moved) == doctest::Approx(0.125 * size * 10));
  }
}

TEST_CASE("lamb: of what is zero, and without a gradient, the ratio is 1") {
  check::memory<double, lamb> zero(lamb{}, {0, 0});
  whole::step(zero, {2, -3}, 0.25);
  CHECK(zero.weights[0] == doctest::Approx(-0.25));
  CHECK(zero.weights[1] == doctest::Approx(0.25));
  check::memory<double, lamb> still(lamb{}, {4, -5});
  whole::step(still, {0, 0}, 0.25);
  CHECK(still.weights == std::vector<double>{4, -5});
}

TEST_CASE("lamb: what is no variable has a ratio of 1, and the same bits in any cut") {
  check::same_however_cut(lamb{.weight_decay = 0.1f});
  check::memory<double, lamb> m(lamb{}, {100, 100});
  m.apply({1, -1}, 0.25);
  CHECK(m.weights[0] == doctest::Approx(99.75));
}

TEST_CASE("lamb: variables are whole in any range and under a moving average, and biases are spared") {
  whole::same_however_cut(lamb{.weight_decay = 0.1f});
  whole::same_however_cut(edl::lookahead<lamb>{.optimizer = {.weight_decay = 0.1f}, .every = 3});
  whole::spares<lamb>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .decay_biases = false}, {});
  whole::spares<lamb>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .exclude_from_weight_decay = "dense/k*"},
                      {}, [](std::size_t i) { return i < 2700; });
}

}  // namespace lamb_test

namespace lion_test {

using edl::lion;

TEST_CASE("lion: the values of trajectories.py") {
  check::pinned(lion{.learning_rate = 0.05f}, {0.9499999992549419, -1.7499999962747097, 0.2499999962747097});
  check::pinned(lion{.learning_rate = 0.05f, .beta_1 = 0.5f, .beta_2 = 0.75f, .weight_decay = 0.01f},
                {0.947552448042963, -1.7452548688456224, 0.2490011206922701});
}

TEST_CASE("lion: the sign of a mean, and the other mean is remembered") {
  for (float const decay : {0.0f, 0.1f}) {
    lion const o{.weight_decay = decay};
    check::formula(o, [&](std::vector<double> const& g) {
      double const b1 = double(o.beta_1), b2 = double(o.beta_2);
      double mean = 0;  // of all gradients but the last
      for (std::size_t s = 0; s + 1 < g.size(); ++s)
        mean += (1 - b2) * std::pow(b2, double(g.size() - 2 - s)) * g[s];
      double const c = b1 * mean + (1 - b1) * g.back();
      return c > 0 ? 1.0 : c < 0 ? -1.0 : 0.0;
    });
  }
}

TEST_CASE("lion: a step is the rate, whatever the gradient; of 0 it is none, and of a NaN it is one") {
  check::memory<double, lion> m(lion{}, {0, 0, 0, 0});
  m.apply({1e-6, -3, 0, std::numeric_limits<double>::quiet_NaN()}, 0.25);
  CHECK(m.weights[0] == -0.25);
  CHECK(m.weights[1] == 0.25);
  CHECK(m.weights[2] == 0);
  CHECK(std::isnan(m.weights[3]));
}

TEST_CASE("lion: cuts and restarts change no bit; slots") {
  check::same_however_cut(lion{});
  check::same_however_cut(lion{.weight_decay = 0.01f});
  REQUIRE(lion{}.slots().size() == 1);
  CHECK(lion{}.slots()[0].name == "m");
}

}  // namespace lion_test

namespace ftrl_test {

using edl::ftrl;

TEST_CASE("ftrl: each weight minimises the paper's sum, by explicit sums over all steps") {
  for (ftrl const& o : {ftrl{.learning_rate = 0.5f}, ftrl{.learning_rate = 0.5f, .l1 = 0.25f, .beta = 1},
                        ftrl{.learning_rate = 0.5f, .initial_accumulator = 0, .l2 = 0.125f}}) {
    check::memory<double, ftrl> m(o, {1, -2, 0.25});
    std::vector<double> sum_g(3), sum_sw(3), squares(3, double(o.initial_accumulator));
    int zeros = 0;
    for (int t = 0; t < 20; ++t) {
      auto const before = m.weights;
      std::vector<double> const g = check::normal<double>(3, 5, std::uint64_t(t));
      m.apply(g, 0.5);
      for (std::size_t i = 0; i < 3; ++i) {
        double const root = std::sqrt(squares[i]);
        squares[i] += g[i] * g[i];
        sum_g[i] += g[i];
        sum_sw[i] += (std::sqrt(squares[i]) - root) / 0.5 * before[i];
        // argmin of sum_g·w − sum_sw·w + l1·|w| + ((β + √n)/rate / 2 + l2)·w²
        double const pull = sum_sw[i] - sum_g[i], l1 = double(o.l1),
                     curve = (double(o.beta) + std::sqrt(squares[i])) / 0.5 + 2 * double(o.l2);
        double const w = std::abs(pull) <= l1 ? 0 : (pull - std::copysign(l1, pull)) / curve;
        CHECK(m.weights[i] == doctest::Approx(w).epsilon(1e-12));
        zeros += m.weights[i] == 0;
      }
    }
    CHECK((zeros > 0) == (o.l1 > 0));
  }
}

TEST_CASE("ftrl: no gradient, a tiny one, none of a rate, and one that is no number") {
  check::memory<float, ftrl> m(ftrl{.initial_accumulator = 0}, {1, 1, 1});
  m.apply({1, 1, 1}, 0);  // a warm-up's first step
  CHECK(m.weights == std::vector<float>{1, 1, 1});
  CHECK(m.slots[0] == std::vector<float>{0, 0, 0});
  m.apply({0, 1e-30f, std::numeric_limits<float>::quiet_NaN()}, 0.1f);
  CHECK(m.weights[0] == 0);
  CHECK(m.weights[1] == 0);
  CHECK(std::isnan(m.weights[2]));
  m.apply({1, 1, 1}, std::numeric_limits<float>::quiet_NaN());  // a rate of a schedule of the user's
  CHECK(std::isnan(m.weights[0]));
}

TEST_CASE("ftrl: cuts and restarts change no bit; slots") {
  check::same_however_cut(ftrl{});
  check::same_however_cut(ftrl{.l1 = 0.01f, .l2 = 0.01f, .beta = 1});
  REQUIRE(ftrl{}.slots().size() == 2);
  CHECK(ftrl{.initial_accumulator = 0.5f}.slots()[0].initial == 0.5f);
  CHECK(ftrl{}.slots()[1].name == "linear");
  CHECK_FALSE(ftrl{.l1 = -1}.options_fit());
}

}  // namespace ftrl_test
