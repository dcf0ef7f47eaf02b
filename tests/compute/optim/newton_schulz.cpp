// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/newton_schulz.hpp"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <vector>

#include "compute/optim/check.hpp"

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
