// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// All products of two different rows v of a sample, added up: Σ_{i<j} ⟨v_i, v_j⟩. It is computed as ½ Σ_k
/// ((Σ_i v_ik)² − Σ_i v_ik²) (Rendle, "Factorization Machines", 2010). Its rows are what an embedding gives.
/// (h, w, c) → (1), over h · w rows of c numbers
struct factorization_machine {
  static constexpr std::string_view name = "factorization_machine";
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape) const { return {1, 1, 1}; }

  template <class D>
  void forward(pass<D>&, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const width = std::size_t(a.in.channels), rows = a.in.size() / width;
    for (std::size_t sample = 0; sample < std::size_t(a.batch); ++sample) {
      T const* const v = a.x.data() + sample * a.in.size();
      T all = 0;
      for (std::size_t k = 0; k < width; ++k) {
        T sum = 0, squares = 0;
        for (std::size_t i = 0; i < rows; ++i) {
          sum += v[i * width + k];
          squares += v[i * width + k] * v[i * width + k];
        }
        all += sum * sum - squares;
      }
      a.y[sample] = all / 2;
    }
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    using T = typename D::scalar;
    auto const width = std::size_t(a.in.channels), rows = a.in.size() / width;
    auto const sums = p.scratch.first(width);
    for (std::size_t sample = 0; sample < std::size_t(a.batch); ++sample) {
      T const* const v = a.x.data() + sample * a.in.size();
      T* const dv = a.dx.data() + sample * a.in.size();
      std::ranges::fill(sums, T(0));
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t k = 0; k < width; ++k) sums[k] += v[i * width + k];
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t k = 0; k < width; ++k)
          dv[i * width + k] = a.dy[sample] * (sums[k] - v[i * width + k]);
    }
  }
  constexpr std::size_t scratch(shape in, pass_size) const { return std::size_t(in.channels); }
};

}  // namespace edl::nn
