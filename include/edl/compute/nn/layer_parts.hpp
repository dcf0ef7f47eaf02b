// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "edl/compute/nn/expression/tensor.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Argument number `Index` of a container. Instantiated so that the compiler's message names an argument that
/// is not a layer; reports each missing part in one sentence.
template <int Index, class Thing>
struct is_a_layer {
  static constexpr bool copies = std::copyable<Thing>;
  static constexpr bool checks = requires(Thing const& l, shape in) {
    { l.check(in) } -> std::same_as<fit>;
  };
  static constexpr bool has_output = requires(Thing const& l, shape in) {
    { l.output(in) } -> std::same_as<shape>;
  };
  static constexpr bool expresses =
      requires(Thing const& l, tensor x, expression::scope& s) { l.forward(x, s); };
  static constexpr bool several = requires(Thing const& l, tensor x, expression::scope& s) {
    l.forward(x, x, s);
  } || requires(Thing const& l, tensor x, expression::scope& s) { l.forward(x, x, x, s); };
  static constexpr bool almost = !expresses && (
      requires(Thing& l, tensor x, expression::scope& s) { l.forward(x, s); } ||
      requires(Thing const& l, tensor x) { l.forward(x); });
  static_assert(copies, "edl: this is no layer: it cannot be copied");
  static_assert(!expresses,
                "edl: this is no layer: its `forward(auto x, auto& layer) const` returns no tensor");
  static_assert(!several,
                "edl: this layer is one of several results: `nn::apply(layer, a, b)` in the function of an "
                "`nn::graph`");
  static_assert(
      !almost,
      "edl: this is no layer: its forward pass is `constexpr auto forward(auto x, auto& layer) const`");
  static_assert(checks || expresses || several || almost,
                "edl: this is no layer: it has no `constexpr edl::fit check(edl::shape in) const`");
  static_assert(has_output || expresses || several || almost || !std::is_class_v<Thing>,
                "edl: this is no layer: it has no `constexpr edl::shape output(edl::shape in) const`");
};

/// Replaces arguments that are not layers, so that nothing else is reported.
struct no_layer {
  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }
  void forward(auto&, auto const&) const {}
  void backward(auto&, auto const&) const {}
};

namespace detail {

/// Reports which of these are not layers.
template <class... Things>
constexpr void explain_layers() {
  []<int... I>(std::integer_sequence<int, I...>) {
    static_assert((... & (sizeof(is_a_layer<I, Things>) > 0)));
  }(std::make_integer_sequence<int, sizeof...(Things)>{});
}

}  // namespace detail

/// Whether a layer has `forward` for this device.
template <class Device, layer L>
constexpr bool has_forward = requires(L const& l, pass<Device>& p,
                                      forward_args<typename Device::scalar> const& f) { l.forward(p, f); };

/// Whether a layer has `backward` for this device.
template <class Device, layer L>
constexpr bool has_backward = requires(L const& l, pass<Device>& p,
                                       backward_args<typename Device::scalar> const& b) { l.backward(p, b); };

/// Whether it is `no_layer`.
template <layer L>
constexpr bool holds_no_layer(L const& l, shape in) {
  if constexpr (container<L>) {
    bool any = false;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      any = any || holds_no_layer(child, s);
      return true;
    });
    return any;
  } else {
    return std::same_as<L, no_layer>;
  }
}

}  // namespace edl::nn
