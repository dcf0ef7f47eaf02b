// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "edl/nn/child.hpp"
#include "edl/nn/input.hpp"

namespace edl::nn {

/// Layers one after the other. Write it as `sequential(…)`.
template <layer... Layers>
struct chain {
  std::tuple<Layers...> layers;

  static constexpr std::string_view name = "sequential";
  static constexpr std::size_t depth = sizeof...(Layers);
  template <std::size_t I>
  using child = std::tuple_element_t<I, std::tuple<Layers...>>;

  constexpr fit check(shape in) const { return check_children(*this, in); }
  constexpr shape output(shape in) const {
    std::apply([&](auto const&... l) { ((in = l.output(in)), ...); }, layers);
    return in;
  }
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    auto const one = [&](auto const& l) {
      if (!visit(l, in, std::string_view{})) return false;
      in = l.output(in);
      return true;
    };
    std::apply([&](auto const&... l) { (void)(one(l) && ...); }, layers);
  }
  /// The results between the layers, and what the layers keep.
  constexpr std::size_t saved(shape in, int batch) const {
    std::size_t n = saved_by_children(*this, in, batch), index = 0;
    each_output(in, [&](shape s) { n += ++index < depth ? rounded(std::size_t(batch) * s.size()) : 0; });
    return n;
  }
  /// Two gradients between layers, the one that comes and the one that goes, and what a layer uses.
  constexpr std::size_t scratch(shape in, int batch) const {
    return 2 * widest(in, batch) + scratch_of_children(*this, in, batch);
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    forward_shares shares(a);
    auto x = a.x;
    shape in = a.in;
    std::size_t index = 0;
    auto const one = [&](auto const& l) {
      shape const out = l.output(in);
      auto const y = index + 1 < depth ? shares.keep(out) : a.y;
      forward_child(p, index++, l, shares.next(l, in, x, y));
      x = y;
      in = out;
    };
    std::apply([&](auto const&... l) { (one(l), ...); }, layers);
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    carver scratch(p.scratch);
    auto const n = widest(a.in, a.batch);
    std::array<std::span<T>, 2> const between{scratch.next(n), scratch.next(n)};
    backward_shares shares(a);
    std::array<backward_args<T>, depth> calls;
    auto x = a.x;
    shape in = a.in;
    std::size_t index = 0;
    bool wanted = !a.dx.empty();  // nothing before the first trained layer needs a gradient
    auto const bind = [&](auto const& l) {
      shape const out = l.output(in);
      view<T> const y = index + 1 < depth ? shares.kept(out) : a.y;
      auto& call = calls[index] = shares.next(l, in, x, y);
      if (index == 0)
        call.dx = a.dx;
      else if (wanted)
        call.dx = between[index % 2].first(x.size());
      wanted = wanted || !call.gradients.empty();
      if (index > 0) calls[index - 1].dy = call.dx;
      x = y;
      in = out;
      ++index;
    };
    // A gradient's place is known before it is: binding needs the order of the layers, running the reverse.
    std::apply([&](auto const&... l) { (bind(l), ...); }, layers);
    calls[depth - 1].dy = a.dy;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (backward_child(p, depth - 1 - I, std::get<depth - 1 - I>(layers), calls[depth - 1 - I],
                      scratch.rest()),
       ...);
    }
    (std::make_index_sequence<depth>{});
  }

  template <class Visit>
  constexpr void each_output(shape in, Visit&& visit) const {
    std::apply([&](auto const&... l) { ((in = l.output(in), visit(in)), ...); }, layers);
  }
  constexpr std::size_t widest(shape in, int batch) const {
    std::size_t most = 0, index = 0;
    each_output(in, [&](shape s) { most = ++index < depth && s.size() > most ? s.size() : most; });
    return rounded(std::size_t(batch) * most);
  }
};

/// A chain of layers and what it starts with: what a model is made of.
template <layer... Layers>
struct network {
  shape input;
  chain<Layers...> body;
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
  return []<int... I>(std::integer_sequence<int, I...>) { return (is_a_layer<I, Things>::value && ...); }
  (std::make_integer_sequence<int, sizeof...(Things)>{});
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
    return network<Layers...>{from.input(), {{layers...}}};
  else
    return network<>{};
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
