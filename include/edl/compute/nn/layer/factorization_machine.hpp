// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// The sum of the products of all pairs of different rows v of a sample: Σ_{i<j} ⟨v_i, v_j⟩. It is computed
/// as ½ Σ_k ((Σ_i v_ik)² − Σ_i v_ik²) (Rendle, "Factorization Machines", 2010). The rows are an embedding's
/// result. (h, w, c) → (1), over h · w rows of c numbers
struct factorization_machine {
  static constexpr std::string_view name = "factorization_machine";
  static constexpr bool portable = true, reads_y = false;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape) const { return {1, 1, 1}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const width = std::size_t(a.in.channels);
    p.device.factorization_forward(std::size_t(a.batch), a.in.size() / width, width, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    auto const width = std::size_t(a.in.channels);
    p.device.factorization_backward(std::size_t(a.batch), a.in.size() / width, width, a.x, a.dy, a.dx);
  }
};

}  // namespace edl::nn
