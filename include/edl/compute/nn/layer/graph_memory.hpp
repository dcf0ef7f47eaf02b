// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// What goes into a node of a graph, what comes out, and where all of it lies. In scalars.
struct node_memory {
  shape in{}, out{};
  std::size_t size = 0;                          ///< of the result
  int last = 0;                                  ///< the last node that reads it
  bool kept = false;                             ///< it lies in the saved memory
  bool again = false;                            ///< what the node keeps is computed again
  bool shared = false;                           ///< other nodes have its variables
  variable_counts at, count;                     ///< of its variables, in the arena
  std::size_t begins = 0;                        ///< in the saved memory: the first of what follows
  std::size_t state = 0, own = 0, own_size = 0;  ///< there: the state as it was, and what the layers keep
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
  /// Of the scratch, in this order: results and what nodes keep that is computed again; in the backward pass
  /// gradients, one more of a result, one more of variables, and what nodes keep; last what a layer takes.
  std::size_t results = 0, gradients = 0, other = 0, twice = 0, spare = 0, layer = 0;

  constexpr node_memory& operator[](int k) { return nodes[std::size_t(k)]; }
  constexpr node_memory const& operator[](int k) const { return nodes[std::size_t(k)]; }

  /// The extents of a node's result; -1: of the graph's input, which node 0 is given.
  constexpr shape out_of(int k) const { return k < 0 ? nodes[0].in : nodes[std::size_t(k)].out; }

  /// Places for what lives from a node to its last reader, where none lies that lives at the same time.
  /// Returns what all take. Those of the last of `size` nodes lie elsewhere.
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
