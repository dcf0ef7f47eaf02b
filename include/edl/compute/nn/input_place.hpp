// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// The place of a network's input in the row of a sample.
struct input_place {
  std::string_view name;              ///< empty: the only input
  std::size_t first = 0, count = 0;   ///< numbers, each of which `feed` writes
  std::size_t first_id = 0, ids = 0;  ///< ids of tables, likewise
  bool list = false;                  ///< it has any number of ids, also none
  bool numbers = false;               ///< it has no ids
};

namespace detail {

template <class Kind>
constexpr input_place place_of(std::string_view name, Kind const& kind, std::size_t first,
                               std::size_t first_id) {
  constexpr bool weighted = std::is_same_v<Kind, weighted_ids>,
                 bag = std::is_same_v<Kind, served_embedding_bag>;
  return {.name = name,
          .first = first,
          .count = weighted || holds_rows<Kind> ? 0 : kind.input().size(),
          .first_id = first_id,
          .ids = bag ? 0 : std::size_t(ids_of_sample(kind)),
          .list = weighted || bag,
          .numbers = !weighted && !holds_rows<Kind> && !holds_ids<Kind>};
}

}  // namespace detail

/// The inputs of a network with this start, in their order.
template <class Start>
constexpr std::array<input_place, 1> input_places(Start const& start) {
  return {detail::place_of({}, start, 0, 0)};
}
template <class... Named>
constexpr std::array<input_place, sizeof...(Named)> input_places(input_list<Named...> const& all) {
  std::size_t first = 0, first_id = 0;
  auto const next = [&](auto const& n) {
    auto const place = detail::place_of(n.name, n.spec, first, first_id);
    first += n.spec.input().size();
    first_id += std::size_t(ids_of_sample(n.spec));
    return place;
  };
  return edl::unpack([&](auto const&... n) { return std::array<input_place, sizeof...(Named)>{next(n)...}; },
                     all.all);
}

/// Calls visit(first) for each offset in the row of a sample where a layer reads a named input.
template <layer L, class Visit>
constexpr void for_each_input(L const& l, shape in, Visit const& visit) {
  if constexpr (requires { l.part; }) {
    visit(std::size_t(l.first));
  } else if constexpr (container<L>) {
    if constexpr (masks_places<L>)
      if (l.mask.row > 0) visit(std::size_t(l.mask.first));
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      for_each_input(child, s, visit);
      return true;
    });
  }
}

/// Whether a layer reads each input of a network, if any of them is read by itself.
template <class Network>
constexpr bool reads_all_inputs(Network const& net) {
  std::size_t branches = 0;
  for_each_input(net.body, net.input, [&](std::size_t) { ++branches; });
  bool all = true;
  for (input_place const& in : input_places(net.start)) {
    bool read = branches == 0;
    for_each_input(net.body, net.input, [&](std::size_t first) { read = read || first == in.first; });
    all = all && read;
  }
  return all;
}

}  // namespace edl::nn
