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

/// A tensor of an exported network, and what its elements are.
struct tensor_origin {
  static constexpr std::size_t none = std::size_t(-1);

  struct element {
    std::size_t place = none;  ///< of the variables' arena; none: it is computed of others, or a constant
    float factor = 1;          ///< that the export multiplies it by, as a shift's gain
    float offset = 0;          ///< that it then adds, as a forget gate's bias
    friend bool operator==(element const&, element const&) = default;
  };

  std::string name;
  std::vector<std::uint64_t> dims;
  std::vector<element> elements;  ///< none: it is the variable of its name, as that lies
};

/// Where the variables of a network stand in its export: whatever layers turn, cut or join comes back to its
/// place. It is found out by exports of variables that are not weights, but tell their own place. What is not
/// changed, as the rows of an embedding, takes no memory.
/// `build` adds the network. Throws what it throws.
std::vector<tensor_origin> origins(parameter_layout const& layout, std::span<table_rows const> tables,
                                   std::function<void(graph&)> const& build);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/origins.ipp"
#endif
