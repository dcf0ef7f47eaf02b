// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "edl/compute/nn/chain.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/graph_joint.hpp"
#include "edl/compute/nn/layer/one_of.hpp"
#include "edl/compute/nn/literal.hpp"

namespace edl::nn {

/// A node of a graph: the layers between two named results. Without a `Name`, its variables are named as in
/// one chain. All nodes with one `Name` share variables; the first `Slices` layers cut an input out of the
/// row of a sample, and have none.
template <literal Name, std::size_t Slices, layer... Layers>
struct layers_of_node : chain<Layers...> {
  static constexpr std::string_view role = Name.view();
  static constexpr bool spliced = role.empty(), reads_operands = true, portable = true;
  static constexpr std::size_t slices = Slices;
  /// There is one layer with variables, whose name is the node's.
  static constexpr bool names_layer = !spliced && sizeof...(Layers) == Slices + 1;
};

/// A node between two results of a graph.
template <class... Kinds>
struct graph_node {
  detail::one_of<Kinds...> what{};
  node_operands from{};
  int operands = 0;
  int owner = 0;  ///< the node that has its variables
  int line = 0;   ///< of the author's file, where it is known

  /// Calls use(layers); does nothing for a join.
  template <class Use>
  constexpr void visit_layers(Use&& use) const {
    what.visit([&]<class Kind>(Kind const& it) {
      if constexpr (!is_joint<Kind>) use(it);
    });
  }
};

}  // namespace edl::nn
