// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edl/compute/nn/chain.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/one_of.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/literal.hpp"

namespace edl::nn {

/// A node of a graph that makes one of the results of others.
template <merge How>
struct joint {
  static constexpr merge how = How;
};

/// A node of a graph: the layers between two results that have a name.
template <layer... Layers>
struct unnamed_chain : chain<Layers...> {
  static constexpr bool spliced = true;
};

/// A node of a graph whose layers have a name. All nodes of this name have the same variables. The first
/// `Slices` layers cut an input out of the row of a sample, and have none.
template <literal Name, std::size_t Slices, layer... Layers>
struct shared_chain : chain<Layers...> {
  static constexpr std::string_view name = Name.view(), role = name;
  static constexpr std::size_t slices = Slices;
};

template <class Kind>
inline constexpr bool is_joint = false;
template <merge How>
inline constexpr bool is_joint<joint<How>> = true;

/// Whether the backward pass of such a node reads its result, what goes into it, and whether it may leave
/// something else in its gradient.
template <class Kind>
inline constexpr bool reads_result = [] {
  if constexpr (is_joint<Kind>)
    return false;
  else
    return reads_y<Kind>;
}();
template <class Kind>
inline constexpr bool reads_operands = true;
template <merge How>
inline constexpr bool reads_operands<joint<How>> = How == merge::product;
template <class Kind>
inline constexpr bool overwrites_gradient = [] {
  if constexpr (is_joint<Kind>)
    return false;
  else
    return overwrites_dy<Kind>;
}();

/// What stands between two results of a graph, and what it is made from.
template <class... Kinds>
struct graph_node {
  static constexpr std::size_t most_operands = 16;

  detail::one_of<Kinds...> what{};
  std::array<std::int16_t, most_operands> from{};  ///< numbers of nodes; -1: the graph's input
  int operands = 0;
  int owner = 0;  ///< the node that has its variables
};

}  // namespace edl::nn
