// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>
#include <utility>

#include "edl/nn/chain.hpp"
#include "edl/nn/input.hpp"

namespace edl::nn {

/// A chain of layers and what it starts with: what a model is made of.
template <class First, layer... Layers>
struct network {
  shape input;
  chain<Layers...> body;
  bool of_ids = false;  ///< it begins with ids alone
  First start{};
};

/// Argument number `Index` of a container. Instantiated so that the compiler's own words name what is no
/// layer.
template <int Index, class Thing>
struct is_a_layer {
  static constexpr bool value = layer<Thing>;
  static_assert(value,
                "edl: this is no layer: a layer has check(shape) and output(shape), and can be copied");
};

namespace detail {

template <class... Things>
consteval bool all_layers() {
  return []<int... I>(std::integer_sequence<int, I...>) {
    return (is_a_layer<I, Things>::value && ...);
  }(std::make_integer_sequence<int, sizeof...(Things)>{});
}

}  // namespace detail

/// The network of these layers, e.g. `sequential(image{.height = 28, .width = 28}, dense{.units = 10})`.
template <class First, class... Layers>
  requires requires(First from) {
    { from.input() } -> std::same_as<shape>;
  }
constexpr auto sequential(First from, Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a network has layers");
  if constexpr (detail::all_layers<Layers...>())
    return network<First, Layers...>{from.input(), {{layers...}}, holds_ids<First>, from};
  else
    return network<First>{};
}

/// Several layers as one, for use within another.
template <class... Layers>
constexpr auto sequential(Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a chain has layers");
  if constexpr (detail::all_layers<Layers...>())
    return chain<Layers...>{{layers...}};
  else
    return chain<>{};
}

}  // namespace edl::nn
