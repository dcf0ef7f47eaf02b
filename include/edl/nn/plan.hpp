// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/core/layout.hpp"
#include "edl/nn/layer.hpp"
#include "edl/nn/naming.hpp"
#include "edl/nn/takes_ids.hpp"

namespace edl::nn {

/// Places of the containers around a layer, from the outermost.
template <int... Index>
struct inside {};

/// Layer number `Index` of a container, a `Layer` that is given `Input`. Instantiated for a layer that does
/// not fit, so that the compiler's own words carry the message: who, where, on what, and why. `Where` is left
/// out for the outermost container.
template <int Index, class Layer, shape Input, fit Why, class... Where>
struct layer_receives {
  static_assert(Why == fit::fits, "edl: this layer cannot follow the one before it");
  static constexpr bool checked = Why == fit::fits;
};

/// The first layer that does not fit, by the places that lead to it.
struct misfit {
  static constexpr std::size_t deepest = 16;

  fit why = fit::fits;
  shape input;
  std::size_t depth = 0;
  std::array<int, deepest> path{};
};

/// `ids`: its input is the network's, and those are ids.
template <layer L>
constexpr misfit find_misfit(L const& l, shape in, bool ids = false) {
  misfit found{l.check(in), in, 0, {}};
  if (found.why == fit::fits) found.why = check_ids<L>(ids, in);
  if constexpr (container<L>) {
    if (found.why == fit::fits && !ids && !knows_ids(l, in)) return found;
    int index = 0;
    bool given = ids;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      misfit const below = find_misfit(child, s, given);
      if (is_serial<L>) given = gives_ids<std::remove_cvref_t<decltype(child)>>;
      if (below.why != fit::fits && below.depth < misfit::deepest) {
        found = {below.why, below.input, below.depth + 1, {}};
        found.path[0] = index;
        for (std::size_t i = 0; i < below.depth; ++i) found.path[i + 1] = below.path[i];
      }
      ++index;
      return below.why == fit::fits;
    });
  }
  return found;
}

namespace detail {

template <class L, misfit const& Found, std::size_t Level, int... Outer>
constexpr bool explain() {
  constexpr int index = Found.path[Level];
  using child = typename L::template child<std::size_t(index)>;
  if constexpr (Level + 1 < Found.depth)
    return explain<child, Found, Level + 1, Outer..., index>();
  else if constexpr (sizeof...(Outer) == 0)
    return layer_receives<index, child, Found.input, Found.why>::checked;
  else
    return layer_receives<index, child, Found.input, Found.why, inside<Outer...>>::checked;
}

template <layer L>
void name_variables(L const& l, shape in, naming& names) {
  if constexpr (container<L>)
    l.children(in, [&](auto const& child, shape s, std::string_view role) {
      names.enter(child_name(child, role));
      name_variables(child, s, names);
      names.leave();
      return true;
    });
  else if constexpr (requires { l.variables(in, [](variable_spec const&) {}); })
    l.variables(in, [&](variable_spec const& v) { names.add(v); });
}

}  // namespace detail

/// Where the variables of a layer lie, and what they are called.
template <layer L>
parameter_layout layout_of(L const& l, shape in) {
  naming names;
  detail::name_variables(l, in, names);
  return names.lay_out();
}

/// Draws the elements [first, first + to.size()) of a layer's variables, as they lie in the arena.
template <layer L, class T>
void draw(L const& l, shape in, random_stream const& random, std::size_t first, std::span<T> to) {
  std::size_t offset[2] = {0, count(l, in).parameters};  // of what comes next: a parameter, a state
  std::uint64_t index = 0;
  std::size_t const last = first + to.size();
  for_each_variable(l, in, [&](variable_spec const& v) {
    std::size_t const begin = offset[!v.trained], end = begin + v.dims.size();
    offset[!v.trained] = end;
    auto const own = random.child(index++);
    std::size_t const from = begin > first ? begin : first, until = end < last ? end : last;
    if (from < until) fill(v.initial, v.dims, own, from - begin, to.subspan(from - first, until - from));
  });
}

}  // namespace edl::nn
