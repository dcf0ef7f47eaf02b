// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/onnx/graph.hpp"

namespace edl::onnx {

/// Adds the nodes of a forward pass that is an expression.
value add_expression(graph& g, nn::expression::form const& of, value const& x);

template <class L>
value to_onnx(graph& g, nn::derived<L> const& l, value const& x) {
  if constexpr (requires { to_onnx(g, l.source, x); })
    return to_onnx(g, l.source, x);  // ONNX has a shorter form
  else
    return add_expression(g, l.now(x.extents), x);
}

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/expression.ipp"
#endif
