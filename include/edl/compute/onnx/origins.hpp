// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/onnx/graph.hpp"
#include "edl/core/layout.hpp"

namespace edl::onnx {

/// A tensor of an exported network, and the origins of its elements.
struct tensor_origin {
  static constexpr std::size_t none = std::size_t(-1);

  struct element {
    std::size_t place = none;  ///< in the variables' arena; none: computed from others, or a constant
    float factor = 1;          ///< by which the export multiplies it, as a shift's gain
    float offset = 0;          ///< which the export then adds, as a forget gate's bias
    friend bool operator==(element const&, element const&) = default;
  };

  std::string name;
  std::vector<std::uint64_t> dims;
  std::vector<element> elements;  ///< empty: the variable of that name, unchanged
};

/// Traces each element of an exported tensor back to its variable, through everything that layers transpose,
/// cut or join. It does so by exporting marked variables, whose values encode their own places. Tensors that
/// the export does not change, as the rows of an embedding, take no memory. `build` adds the network. Throws
/// what it throws.
std::vector<tensor_origin> origins(parameter_layout const& layout, std::span<table_rows const> tables,
                                   std::function<void(graph&)> const& build);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/origins.ipp"
#endif
