// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer/graph_node.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// What goes into the nodes of a graph, and what comes out, by their numbers.
template <std::size_t Most>
struct graph_sizes {
  std::array<shape, Most> in{}, out{};
  int known = 0;  ///< nodes whose results have a shape
  fit why = fit::fits;
  expression::mistake wrong{};

  constexpr std::size_t elements(pass_size batch, int k) const {
    return std::size_t(batch) * out[std::size_t(k)].size();
  }
};

/// Where all of a node lies, by its number.
template <std::size_t Most>
struct graph_places {
  template <class T>
  using of_nodes = std::array<T, Most>;

  of_nodes<std::size_t> begins{};  ///< in the saved memory: the first of what follows
  of_nodes<std::size_t> result{}, own{}, state_kept{}, own_size{};
  of_nodes<std::size_t> in_scratch{}, gradient{};  ///< in the scratch
  of_nodes<std::size_t> parameters{}, parameter_size{}, state{}, state_size{};
  of_nodes<bool> kept{};    ///< the result is in the saved memory
  of_nodes<bool> again{};   ///< what a node keeps is computed again
  of_nodes<bool> shared{};  ///< other nodes have its variables
  std::size_t saved = 0;
  /// Of the scratch, in this order: results and what nodes keep that is computed again; in the backward pass
  /// gradients, one more of a result, one more of variables, and what nodes keep; last what a layer takes.
  std::size_t results = 0, gradients = 0, other = 0, twice = 0, spare = 0, layer = 0;
};

namespace detail {

/// Places for what lives from a node to its last reader, where none lies that lives at the same time.
/// Returns what all take.
template <class Graph, class Has>
constexpr std::size_t spread(Graph const& g, graph_sizes<Graph::most> const& s, pass_size batch,
                             std::array<int, Graph::most> const& last,
                             std::array<std::size_t, Graph::most>& to, Has const& has) {
  constexpr auto at = [](int k) { return std::size_t(k); };
  int const size = g.size;
  std::size_t all = 0;
  for (int k = size - 1; k-- > 0;) {
    if (!has(k)) continue;
    std::size_t const n = rounded(s.elements(batch, k));
    std::size_t first = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int j = k + 1; j + 1 < size && j <= last[at(k)]; ++j) {
        std::size_t const end = to[at(j)] + rounded(s.elements(batch, j));
        if (!has(j) || first >= end || to[at(j)] >= first + n) continue;
        first = end;
        moved = true;
      }
    }
    to[at(k)] = first;
    all = std::max(all, first + n);
  }
  return all;
}

}  // namespace detail

/// Where the parts of a graph lie.
template <class Graph>
constexpr auto place(Graph const& g, graph_sizes<Graph::most> const& s, pass_size batch) {
  graph_places<Graph::most> m;
  constexpr auto at = [](int k) { return std::size_t(k); };
  std::array<int, Graph::most> last{};         // reader
  std::array<int, Graph::most + 1> readers{};  // by number + 1
  variable_counts so_far;
  for (int k = 0; k < g.size; ++k)
    g.node(k).what.visit([&]<class Kind>(Kind const& what) {
      m.kept[at(k)] = k + 1 < g.size && reads_result<Kind>;
      for (int i = 0; i < g.node(k).operands; ++i) {
        int const from = g.node(k).from[at(i)];
        if (readers[at(from + 1)]++ > 0)
          m.other =
              std::max(m.other, rounded(std::size_t(batch) * (from < 0 ? s.in[0] : s.out[at(from)]).size()));
        if (from < 0) continue;
        last[at(from)] = k;
        m.kept[at(from)] = m.kept[at(from)] || reads_operands<Kind>;
      }
      if constexpr (!is_joint<Kind>) {
        auto const n = count(what, s.in[at(k)]);
        int const owner = g.node(k).owner;
        m.parameter_size[at(k)] = n.parameters;
        m.state_size[at(k)] = n.state;
        m.parameters[at(k)] = owner == k ? so_far.parameters : m.parameters[at(owner)];
        m.state[at(k)] = owner == k ? so_far.state : m.state[at(owner)];
        if (owner == k) {
          so_far.parameters += n.parameters;
          so_far.state += n.state;
        } else {
          m.shared[at(k)] = m.shared[at(owner)] = true;
          m.twice = std::max(m.twice, rounded(n.parameters));
        }
        m.own_size[at(k)] = saved_by(what, s.in[at(k)], batch.of_sides({}));
        m.layer = std::max(m.layer, scratch_of(what, s.in[at(k)], batch.of_sides({})));
      }
    });
  for (int k = 0; k < g.size; ++k) {
    m.begins[at(k)] = m.saved;
    m.again[at(k)] =
        batch.again && batch.inner == 0 && batch.again[k] != 0 && k + 1 < g.size && m.own_size[at(k)] > 0;
    m.kept[at(k)] = m.kept[at(k)] || m.again[at(k)];
    auto const take = [&](std::size_t n) { return std::exchange(m.saved, m.saved + rounded(n)); };
    m.result[at(k)] = take(m.kept[at(k)] ? s.elements(batch, k) : 0);
    m.state_kept[at(k)] = take(m.again[at(k)] ? m.state_size[at(k)] : 0);
    m.own[at(k)] = take(m.again[at(k)] ? 0 : m.own_size[at(k)]);
    if (m.again[at(k)]) m.spare = std::max(m.spare, rounded(m.own_size[at(k)]));
  }
  m.results = detail::spread(g, s, batch, last, m.in_scratch, [&](int k) { return !m.kept[at(k)]; });
  m.gradients = detail::spread(g, s, batch, last, m.gradient, [](int) { return true; });
  return m;
}

}  // namespace edl::nn
