// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/muon.hpp"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "compute/optim/check.hpp"
#include "compute/optim/whole.hpp"
#include "edl/compute/optim/adamw.hpp"
#include "edl/compute/optim/lookahead.hpp"
#include "edl/compute/optim/sgd.hpp"
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
