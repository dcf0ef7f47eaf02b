// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/onnx/graph.hpp"

namespace edl::onnx {

/// Adds the nodes of a forward pass that is an expression of these inputs, which together have the extents
/// `whole`.
value add_expression(graph& g, nn::expression::form const& of, std::span<value const> x, shape whole);

template <class L>
value to_onnx(graph& g, nn::derived<L> const& l, value const& x) {
  if constexpr (requires { to_onnx(g, l.source, x); })
    return to_onnx(g, l.source, x);  // ONNX has a shorter form
  else
    return add_expression(g, l.now(x.extents), std::span(&x, 1), x.extents);
}

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/expression.ipp"
#endif
