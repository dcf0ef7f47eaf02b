// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "edl/compute/nn/layer/whitening.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn {

EDL_INLINE void whiten(view<float> pictures, shape of_one, extent window, double epsilon,
                       std::span<float> kernel) {
  auto const h = std::size_t(std::max(window.height, 1)), w = std::size_t(std::max(window.width, 1)),
             c = std::size_t(of_one.channels), size = h * w * c, row = std::size_t(of_one.width) * c;
  bool const fits =
      window.height > 0 && window.width > 0 && window.height <= of_one.height && window.width <= of_one.width;
  if (!fits || pictures.empty() || pictures.size() % of_one.size() != 0 || kernel.size() % size != 0)
    throw error("whitening takes whole pictures, windows that fit into them, and filters of a window's size");
  Eigen::MatrixXd moments = Eigen::MatrixXd::Zero(Eigen::Index(size), Eigen::Index(size));
  std::size_t const down = std::size_t(of_one.height) - h + 1, across = std::size_t(of_one.width) - w + 1;
  Eigen::MatrixXf patches(Eigen::Index(size), Eigen::Index(down * across));
  for (std::size_t at = 0; at < pictures.size(); at += of_one.size()) {
    for (std::size_t i = 0; i < down; ++i)
      for (std::size_t j = 0; j < across; ++j)
        for (std::size_t k = 0; k < h; ++k)
          std::copy_n(pictures.data() + at + (i + k) * row + j * c, w * c,
                      patches.col(Eigen::Index(i * across + j)).data() + k * w * c);
    moments += (patches * patches.transpose()).cast<double>();
  }
  moments /= double(pictures.size() / of_one.size() * down * across);
  if (!moments.allFinite()) throw error("whitening: a picture holds a value that is not finite");
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> const solver(moments);
  std::size_t const filters = kernel.size() / size;
  for (std::size_t f = 0; f < filters; ++f) {
    auto const e = Eigen::Index(size - 1 - f % size);
    auto v = solver.eigenvectors().col(e);
    // The sign of an eigenvector is arbitrary; all processes must choose the same.
    Eigen::Index largest = 0;
    v.cwiseAbs().maxCoeff(&largest);
    double const sign = ((v[largest] < 0) != (f / size % 2 == 1)) ? -1 : 1,
                 scale = sign / std::sqrt(std::max(solver.eigenvalues()[e], 0.0) + epsilon);
    for (std::size_t i = 0; i < size; ++i) kernel[i * filters + f] = float(v[Eigen::Index(i)] * scale);
  }
}

}  // namespace edl::nn
