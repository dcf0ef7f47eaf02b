// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>

#include "edl/compute/nn/chain.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/input.hpp"
#include "edl/compute/nn/layer/tied.hpp"
#include "edl/compute/nn/layer_parts.hpp"

namespace edl::nn {

/// A chain of layers with its input: a model's network.
template <class First, layer... Layers>
struct network {
  shape input;
  typename body_of_network<Layers...>::type body;
  bool of_ids = false;  ///< its only input is ids
  First start{};
};

/// The network of these layers, e.g. `sequential(image{.height = 28, .width = 28}, dense{.units = 10})`.
template <class First, class... Layers>
  requires requires(First from) {
    { from.input() } -> std::same_as<shape>;
  }
constexpr auto sequential(First from, Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a network has layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return sequential(from, as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    if constexpr (std::same_as<typename body_of_network<Layers...>::type, chain<Layers...>>)
      return network<First, Layers...>{from.input(), {{layers...}}, holds_ids<First>, from};
    else
      return network<First, Layers...>{from.input(), layers..., holds_ids<First>, from};
  } else {
    detail::explain_layers<Layers...>();
    return network<First, no_layer>{from.input(), {}, holds_ids<First>, from};
  }
}

/// Several layers as one, for use within another.
template <class... Layers>
constexpr auto sequential(Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a chain has layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return sequential(as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    return chain<Layers...>{{layers...}};
  } else {
    detail::explain_layers<Layers...>();
    return chain<no_layer>{};
  }
}

}  // namespace edl::nn
