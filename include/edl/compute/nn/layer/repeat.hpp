// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/literal.hpp"

namespace edl::nn {

/// Layers one after the other, under a name. Write it as `named<"stem">(…)` or `repeat<6>(…)`.
template <literal Name, layer... Layers>
struct named_chain : chain<Layers...> {
  static constexpr std::string_view name = Name.view();
};

/// Several layers as one, with variables under this name: `named<"stem">(conv2d{…}, relu{})` has
/// `stem/conv2d/kernel`.
template <literal Name, class... Layers>
constexpr auto named(Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a chain has layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return named<Name>(as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    return named_chain<Name, Layers...>{{{layers...}}};
  } else {
    detail::explain_layers<Layers...>();
    return named_chain<Name, no_layer>{};
  }
}

/// The same block `Times` times, one after the other, each with its own variables. They are numbered like
/// siblings: `repeat/residual/…`, `repeat/residual_1/…`.
template <std::size_t Times, class Block>
constexpr auto repeat(Block block) {
  static_assert(Times > 0, "edl: a block is repeated at least once");
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return named<"repeat">(((void)I, block)...);
  }(std::make_index_sequence<Times>{});
}

}  // namespace edl::nn
