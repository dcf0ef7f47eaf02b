// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/muon.hpp"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/optim/check.hpp"
#include "compute/optim/whole.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace muon_test {

using edl::muon;

namespace {

using dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

dense as_matrix(std::vector<double> const& x, int rows) {
  return Eigen::Map<dense const>(x.data(), rows, Eigen::Index(x.size()) / rows);
}

/// Jordan's step on a matrix, with the factor of Liu et al.
struct published {
  muon o;
  dense w, m = dense::Zero(w.rows(), w.cols());

  void step(dense const& g, double rate) {
    double const mu = double(o.momentum);
    m += (1 - mu) * (g - m);
    dense x = o.nesterov ? dense(g + mu * (m - g)) : m;
    bool const tall = x.rows() > x.cols();
    if (tall) x = x.transpose().eval();
    x /= x.norm() + 1e-7;
    for (int i = 0; i < 5; ++i) {
      dense const gram = x * x.transpose();
      x = (3.4445 * x + (-4.7750 * gram + 2.0315 * gram * gram) * x).eval();
    }
    if (tall) x = x.transpose().eval();
    double const scale = 0.2 * std::sqrt(double(std::max(w.rows(), w.cols())));
    w = ((1 - rate * double(o.weight_decay)) * w - rate * scale * x).eval();
  }
};

edl::variable named(char const* name, edl::extents dims) { return {name, dims, 0}; }

}  // namespace

static_assert(edl::whole_optimizer<muon> && edl::whole_optimizer<edl::lookahead<muon>>);

TEST_CASE("muon: the published step, in double and in float") {
  for (muon const& o : {muon{}, muon{.nesterov = false}, muon{.momentum = 0.5f, .weight_decay = 0.1f}})
    for (edl::extents const dims : {edl::extents{12, 30}, edl::extents{30, 12}, edl::extents{3, 2, 4, 5}}) {
      std::size_t const n = dims.size();
      int const rows = int(n) / dims.sizes[std::size_t(dims.rank) - 1];
      check::memory<double, muon> wide(o, check::normal<double>(n, 1, 0));
      check::memory<float, muon> narrow(o, {wide.weights.begin(), wide.weights.end()});
      published p{o, as_matrix(wide.weights, rows)};
      for (std::uint64_t t = 0; t < 20; ++t) {
        auto const g = check::normal<double>(n, 2, t);
        double const rate = double(float(0.05 / (1 + 0.1 * double(t))));
        whole::step(wide, g, rate, dims);
        whole::step(narrow, std::vector<float>(g.begin(), g.end()), float(rate), dims);
        p.step(as_matrix(g, rows), rate);
        REQUIRE((as_matrix(wide.weights, rows) - p.w).cwiseAbs().maxCoeff() < 1e-10);
        REQUIRE(
            (as_matrix({narrow.weights.begin(), narrow.weights.end()}, rows) - p.w).cwiseAbs().maxCoeff() <
            1e-4);
      }
      CHECK((as_matrix(check::normal<double>(n, 1, 0), rows) - p.w).norm() > 0.5);
      CHECK(wide.slots[1] == std::vector<double>(n, 0));
    }
}

TEST_CASE("muon: a step's root mean square is about 0.2 of the rate, whatever the gradient's size") {
  for (double const size : {1e-4, 1.0, 1e4}) {
    check::memory<double, muon> m(muon{}, std::vector<double>(64 * 256));
    auto g = check::normal<double>(64 * 256, 1, 0);
    for (double& each : g) each *= size;
    whole::step(m, g, 1.0, {64, 256});
    CHECK(as_matrix(m.weights, 64).norm() / std::sqrt(64 * 256) == doctest::Approx(0.2).epsilon(0.2));
  }
}

TEST_CASE("muon: what is no matrix is trained by AdamW, bit by bit") {
  muon const o{.adamw_for = "head/*,*out*", .weight_decay = 0.1f};
  CHECK(o.matrix_of(named("dense/kernel", {10, 4})) == edl::matrix_extents{10, 4});
  CHECK(o.matrix_of(named("conv2d/kernel", {3, 3, 8, 16})) == edl::matrix_extents{72, 16});
  CHECK(o.matrix_of(named("cross/kernel", {2, 5, 4})) == edl::matrix_extents{10, 4});
  for (edl::variable const& none :
       {named("layer_norm/gamma", {10}), named("gru/bias", {2, 30}), named("embedding/embeddings", {100, 8}),
        named("positions/rows", {64, 8}), named("head/kernel", {10, 4}), named("gru/out_kernel", {10, 4}),
        named("dense/kernel", {10, 1}), named("conv2d/kernel", {1, 1, 1, 8})}) {
    CAPTURE(none.name);
    CHECK_FALSE(o.matrix_of(none).has_value());
  }
  edl::adamw const other{
      .beta_1 = o.beta_1, .beta_2 = o.beta_2, .epsilon = o.epsilon, .weight_decay = o.weight_decay};
  check::memory<float, muon> one(o, check::normal<float>(40, 1, 0));
  check::memory<float, edl::adamw> two(other, one.weights);
  for (std::uint64_t t = 0; t < 5; ++t) {
    auto const g = check::normal<float>(40, 2, t);
    whole::step(one, g, 0.01f, {40});
    two.apply(g, 0.01f);
  }
  CHECK(check::same_bits(one.weights, two.weights));
  check::same_however_cut(o);
}

TEST_CASE("muon: a norm is set anew before some steps, and a step may be as large as the rate") {
  muon const o{.match_adamw = false, .reset_norms = {.every = 2}};
  check::memory<double, muon> m(o, check::normal<double>(60, 1, 0)),
      plain(muon{.match_adamw = false}, m.weights);
  auto const norm = [](std::vector<double> const& w) { return as_matrix(w, 12).norm(); };
  auto const g = check::normal<double>(60, 2, 0);
  whole::step(m, g, 1e-9, {12, 5});
  whole::step(plain, g, 1e-9, {12, 5});
  CHECK(m.weights == plain.weights);
  whole::step(m, g, 1e-9, {12, 5});
  CHECK(norm(m.weights) == doctest::Approx(std::sqrt(5)).epsilon(1e-6));
  whole::step(m, g, 0.5, {12, 5});
  CHECK(norm(m.weights) != doctest::Approx(std::sqrt(5)).epsilon(1e-3));
  whole::step(plain, g, 1.0, {12, 5});
  auto const before = as_matrix(plain.weights, 12);
  whole::step(plain, g, 2.0, {12, 5});
  CHECK((as_matrix(plain.weights, 12) - before).norm() == doctest::Approx(2 * std::sqrt(5)).epsilon(0.3));
}

TEST_CASE("some steps come at distances that grow") {
  auto const listed = [](edl::some_steps const& s, std::uint64_t until) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t step = 1; step <= until; ++step)
      if (s.contain(step)) all.push_back(step);
    return all;
  };
  using list = std::vector<std::uint64_t>;
  CHECK(listed({}, 10).empty());
  CHECK(listed({.every = 3}, 10) == list{3, 6, 9});
  CHECK(listed({.every = 1, .growth = 2, .steps = 6}, 14) == list{1, 2, 4, 7, 10, 13});
  for (edl::some_steps const& s :
       {edl::some_steps{2, 15, 243}, {1, 7, 5}, {4, 1000, 100}, {3, 15, 100'000}}) {
    list wanted;
    for (std::uint64_t step = 1, last = 0; step <= 2000; ++step)
      if (step - last >= s.every + s.growth * std::min(step, s.steps) / s.steps)
        wanted.push_back(last = step);
    CHECK(listed(s, 2000) == wanted);
  }
  static_assert(edl::some_steps{2, 15, 243}.contain(2));
}

TEST_CASE("muon: SGD trains the rest where that is wanted, bit by bit") {
  muon const o{.sgd_for_rest = true, .beta_1 = 0.8f, .weight_decay = 0.1f};
  check::memory<float, muon> one(o, check::normal<float>(40, 1, 0));
  check::memory<float, edl::sgd> two({.momentum = 0.8f, .nesterov = true, .weight_decay = 0.1f}, one.weights);
  CHECK(one.slots.size() == 1);
  for (std::uint64_t t = 0; t < 5; ++t) {
    auto const g = check::normal<float>(40, 2, t);
    whole::step(one, g, 0.01f, {40});
    two.apply(g, 0.01f);
  }
  CHECK(check::same_bits(one.weights, two.weights));
  whole::same_however_cut(o);
}

TEST_CASE("muon: matrices are whole in any range, and biases are spared") {
  whole::same_however_cut(muon{.weight_decay = 0.1f});
  whole::same_however_cut(edl::lookahead<muon>{.every = 3});
  whole::spares<muon>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .decay_biases = false}, {});
  whole::spares<muon>({.weight_decay = 0.1f}, {.weight_decay = 0.1f, .exclude_from_weight_decay = "dense/k*"},
                      {}, [](std::size_t i) { return i < 2700; });
}

TEST_CASE("muon: a name that no variable has is refused") {
  edl::rule const good(muon{.adamw_for = "dense/*"}, edl::constant_rate{1}, whole::layout());
  CHECK_NOTHROW(good.check(whole::layout()));
  CHECK_NOTHROW(edl::rule(edl::sgd{}).check(whole::layout()));
  edl::rule const bad(edl::lookahead<muon>{.optimizer = {.adamw_for = "dense/kernl"}}, edl::constant_rate{1},
                      whole::layout());
  CHECK_THROWS_WITH_AS(
      bad.check(whole::layout()),
      "adamw_for of the model's optimizer: 'dense/kernl' matches no variable that is trained; "
      "did you mean dense/kernel?",
      edl::error);
}

}  // namespace muon_test

namespace newton_schulz_test {

namespace {

using dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct extents {
  int rows, columns;
};
constexpr extents some[] = {{2, 2}, {7, 7}, {96, 96}, {97, 200}, {200, 97}, {3, 100}, {300, 5}, {130, 129}};

template <class T>
std::vector<T> orthogonal(std::vector<T> x, extents e, int steps,
                          edl::newton_schulz_polynomial const& p = edl::jordan_polynomial) {
  edl::orthogonalise<T>(x, std::size_t(e.rows), std::size_t(e.columns), steps, p);
  return x;
}

template <class T>
dense as_matrix(std::vector<T> const& x, extents e) {
  using own = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<own const>(x.data(), e.rows, e.columns).template cast<double>();
}

/// The quintic iteration as Jordan writes it, in double.
dense by_the_book(dense x, int steps, edl::newton_schulz_polynomial const& p = {3.4445, -4.7750, 2.0315}) {
  auto const [a, b, c] = p;
  bool const tall = x.rows() > x.cols();
  if (tall) x = x.transpose().eval();
  x /= x.norm() + 1e-7;
  for (int i = 0; i < steps; ++i) {
    dense const gram = x * x.transpose();
    x = (a * x + (b * gram + c * gram * gram) * x).eval();
  }
  return tall ? dense(x.transpose()) : x;
}

}  // namespace

TEST_CASE("three steps of a steeper polynomial bring large singular values near one") {
  constexpr edl::newton_schulz_polynomial steeper{3.4576, -4.7391, 2.0843};
  extents const e{64, 160};
  auto const x = check::normal<double>(std::size_t(e.rows * e.columns), 1, 0);
  dense const got = as_matrix(orthogonal(x, e, 3, steeper), e);
  CHECK((got - by_the_book(as_matrix(x, e), 3, steeper)).cwiseAbs().maxCoeff() < 1e-11);
  Eigen::VectorXd const values = Eigen::JacobiSVD<dense>(got).singularValues();
  CHECK(values.minCoeff() > 0.6);
  CHECK(values.maxCoeff() < 1.3);
}

TEST_CASE("the iteration is the published one, in double and in float, whatever the shape") {
  for (extents const e : some) {
    CAPTURE(e.rows);
    CAPTURE(e.columns);
    auto const x = check::normal<double>(std::size_t(e.rows * e.columns), 1, 0);
    for (int const steps : {0, 1, 5}) {
      dense const expected = by_the_book(as_matrix(x, e), steps);
      CHECK((as_matrix(orthogonal(x, e, steps), e) - expected).cwiseAbs().maxCoeff() < 1e-11);
      auto const narrow = orthogonal(std::vector<float>(x.begin(), x.end()), e, steps);
      CHECK((as_matrix(narrow, e) - expected).cwiseAbs().maxCoeff() < 1e-4);
    }
  }
}

TEST_CASE("singular values come near 1, and singular vectors stay") {
  for (extents const e : some) {
    CAPTURE(e.rows);
    CAPTURE(e.columns);
    auto const x = check::normal<double>(std::size_t(e.rows * e.columns), 2, 0);
    Eigen::JacobiSVD<dense, Eigen::HouseholderQRPreconditioner> const svd(
        as_matrix(x, e), Eigen::ComputeThinU | Eigen::ComputeThinV);
    // In the base of the singular vectors the result is diagonal.
    dense const y = svd.matrixU().transpose() * as_matrix(orthogonal(x, e, 5), e) * svd.matrixV();
    dense const beside = y - dense(y.diagonal().asDiagonal());
    CHECK(beside.cwiseAbs().maxCoeff() < 1e-10);
    double const norm = svd.singularValues().norm();
    for (Eigen::Index i = 0; i < y.rows(); ++i) {
      if (svd.singularValues()(i) < norm / 100) continue;
      CHECK(y(i, i) > 0.68);
      CHECK(y(i, i) < 1.14);
    }
  }
}

TEST_CASE("zeros stay zeros, and the size of a matrix does not matter") {
  extents const e{4, 3};
  CHECK(orthogonal(std::vector<float>(12, 0), e, 5) == std::vector<float>(12, 0));
  auto const x = check::normal<double>(12, 3, 0);
  auto larger = x;
  for (double& each : larger) each *= 4096;
  auto const one = orthogonal(x, e, 5), other = orthogonal(larger, e, 5);
  for (std::size_t i = 0; i < 12; ++i) CHECK(other[i] == doctest::Approx(one[i]).epsilon(1e-5));
}

}  // namespace newton_schulz_test
