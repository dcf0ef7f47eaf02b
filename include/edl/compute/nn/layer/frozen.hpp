// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A layer whose trained variables are frozen instead. They have the same names, and lie apart from the
/// arena: they have no gradients, and nothing that stores or sends the arena knows of them.
///
/// A layer that cannot leave out gradients (`skips_gradients`) writes them into scratch memory.
template <layer L>
struct frozen_layer : L {
  static constexpr bool is_frozen = true, splits_backward = false;

  constexpr L const& inner() const { return *this; }

  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    each_frozen(in, visit);
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    return (skips_gradients<L> ? 0 : rounded(count(inner(), in).parameters)) + scratch_of(inner(), in, batch);
  }

  template <class D, class... More>
    requires requires(L const& l, pass<D>& p, forward_args<typename D::scalar> const& a,
                      More const&... more) { l.forward(p, a, more...); }
  void forward(pass<D>& p, forward_args<typename D::scalar> a, More const&... more) const {
    a.parameters = a.frozen;
    inner().forward(p, a, more...);
  }
  template <class D, class... More>
    requires requires(L const& l, pass<D>& p, backward_args<typename D::scalar> const& a,
                      More const&... more) { l.backward(p, a, more...); }
  void backward(pass<D>& p, backward_args<typename D::scalar> a, More const&... more) const {
    a.parameters = a.frozen;
    carver memory(p.scratch);
    a.gradients = memory.aligned(skips_gradients<L> ? 0 : a.frozen.size());
    pass<D> own = p;
    own.scratch = memory.rest();
    inner().backward(own, a, more...);
  }

 protected:
  template <class Visit>
  constexpr void each_frozen(shape in, Visit& visit) const {
    auto const one = [&](variable_spec v) {
      v.frozen = v.trained;
      v.trained = false;
      visit(v);
    };
    L::variables(in, variable_visitor{one});
  }
};

}  // namespace edl::nn
