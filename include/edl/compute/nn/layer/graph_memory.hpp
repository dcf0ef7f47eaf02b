// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// The input, the result and the memory of a graph's node. In scalars.
struct node_memory {
  shape in{}, out{};
  std::size_t size = 0;                          ///< of the result
  int last = 0;                                  ///< the last node that reads it
  bool kept = false;                             ///< it is in the saved memory
  bool again = false;                            ///< the node's saved values are recomputed
  bool shared = false;                           ///< other nodes share its variables
  variable_counts at, count;                     ///< of its variables, in the arena
  std::size_t begins = 0;                        ///< in the saved memory: the offset of the following
  std::size_t state = 0, own = 0, own_size = 0;  ///< there: the original state, and the layers' saved values
  std::size_t result = 0;                        ///< there, or in the scratch
  std::size_t gradient = 0;                      ///< in the scratch
};

/// The memory of a graph for a pass.
struct graph_memory {
  static constexpr int most = 64;

  std::array<node_memory, std::size_t(most)> nodes{};
  int known = 0;  ///< nodes whose results have a shape
  fit why = fit::fits;
  expression::mistake wrong{};
  std::size_t saved = 0;
  /// Sizes in the scratch, in this order: results, and saved values of nodes that are recomputed; in the
  /// backward pass gradients, another one of a result, another one of variables, and the nodes' saved values;
  /// last a layer's scratch.
  std::size_t results = 0, gradients = 0, other = 0, twice = 0, spare = 0, layer = 0;

  constexpr node_memory& operator[](int k) { return nodes[std::size_t(k)]; }
  constexpr node_memory const& operator[](int k) const { return nodes[std::size_t(k)]; }

  /// The extents of a node's result; -1: of the graph's input, which is node 0's.
  constexpr shape out_of(int k) const { return k < 0 ? nodes[0].in : nodes[std::size_t(k)].out; }

  /// Places values that are live from a node to its last reader without overlapping values live at the same
  /// time. Returns the total size. Values of the last of `size` nodes are placed elsewhere.
  template <class Has>
  constexpr std::size_t spread(int size, std::size_t node_memory::* place, Has const& has) {
    auto& all = *this;
    std::size_t most_taken = 0;
    for (int k = size - 2; k >= 0; --k) {
      if (!has(all[k])) continue;
      std::size_t const n = rounded(all[k].size);
      std::size_t first = 0;
      for (int j = k + 1; j <= all[k].last && j < size - 1; ++j) {
        std::size_t const begin = all[j].*place, end = begin + rounded(all[j].size);
        if (!has(all[j]) || first >= end || begin >= first + n) continue;
        first = end;
        j = k;  // it may meet one that it has passed
      }
      all[k].*place = first;
      most_taken = std::max(most_taken, first + n);
    }
    return most_taken;
  }
};

}  // namespace edl::nn
