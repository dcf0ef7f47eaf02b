// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "edl/nn/child.hpp"
#include "edl/nn/fuse.hpp"
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
  /// What computes it.
  constexpr auto steps() const { return fuse(layers); }
  using steps_type = decltype(fuse(std::declval<std::tuple<Layers...> const&>()));
  static constexpr std::size_t length = std::tuple_size_v<steps_type>;
  static constexpr bool spends_dy = std::tuple_element_t<length - 1, steps_type>::spends_dy;

  /// The results between the steps, and what the steps keep.
  constexpr std::size_t saved(shape in, int batch) const {
    std::size_t n = 0, index = 0;
    each_step(in, [&](auto const& s, shape from) {
      n += rounded(s.saved(from, batch));
      if (++index < length) n += rounded(std::size_t(batch) * s.output(from).size());
    });
    return n;
  }
  /// Two gradients between steps, the one that comes and the one that goes, and what a step uses.
  constexpr std::size_t scratch(shape in, int batch) const {
    std::size_t most = 0;
    each_step(in, [&](auto const& s, shape from) {
      std::size_t const n = s.scratch(from, batch);
      most = n > most ? n : most;
    });
    return widest(in, batch, 0) + widest(in, batch, 1) + most;
  }

  /// Whether something can be added to the result before it is stored, and an activation applied.
  static constexpr bool adds = [] {
    using last = std::tuple_element_t<length - 1, steps_type>;
    if constexpr (requires { last::adds; })
      return bool(last::adds);
    else
      return false;
  }();

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, view<typename D::scalar> more = {},
               activation f = activation::none) const {
    forward_shares shares(a);
    auto x = a.x;
    std::size_t index = 0, place = 0;
    each_step(a.in, [&](auto const& s, shape in) {
      shape const out = s.output(in);
      auto const y = ++index < length ? shares.keep(out) : a.y;
      auto const call = shares.next(count(s, in), out, s.saved(in, a.batch), in, x, y);
      if constexpr (requires { s.forward(p, call, more, f); }) {
        if (index == length && (!more.empty() || f != activation::none))
          forward_child(p, place, s, call, more, f);
        else
          forward_child(p, place, s, call);
      } else {
        forward_child(p, place, s, call);
      }
      place += s.width;
      x = y;
    });
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    carver scratch(p.scratch);
    std::array<std::span<T>, 2> const between{scratch.next(widest(a.in, a.batch, 0)),
                                              scratch.next(widest(a.in, a.batch, 1))};
    backward_shares shares(a);
    std::array<backward_args<T>, length> calls;
    std::array<std::size_t, length> places;
    auto x = a.x;
    std::size_t index = 0, place = 0;
    bool wanted = !a.dx.empty();  // nothing before the first trained layer needs a gradient
    // A gradient's place is known before it is: binding needs the order of the steps, running the reverse.
    each_step(a.in, [&](auto const& s, shape in) {
      shape const out = s.output(in);
      view<T> const y = index + 1 < length ? shares.kept(out) : a.y;
      auto& call = calls[index] = shares.next(count(s, in), out, s.saved(in, a.batch), in, x, y);
      if (index == 0)
        call.dx = a.dx;
      else if (wanted)
        call.dx = between[index % 2].first(x.size());
      wanted = wanted || !call.gradients.empty();
      if (index > 0) calls[index - 1].dy = call.dx;
      places[index++] = place;
      place += s.width;
      x = y;
    });
    calls[length - 1].dy = a.dy;
    auto const all = steps();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (backward_child(p, places[length - 1 - I], std::get<length - 1 - I>(all), calls[length - 1 - I],
                      scratch.rest()),
       ...);
    }
    (std::make_index_sequence<length>{});
  }

  /// visit(step, its input), in order.
  template <class Visit>
  constexpr void each_step(shape in, Visit&& visit) const {
    std::apply([&](auto const&... s) { ((visit(s, in), in = s.output(in)), ...); }, steps());
  }
  template <class Step>
  static constexpr variable_counts count(Step const& s, shape in) {
    return nn::count(s.source(), in);
  }
  /// The largest gradient that every other step is given, from the first or the second on; the first step's
  /// goes elsewhere.
  constexpr std::size_t widest(shape in, int batch, std::size_t parity) const {
    std::size_t most = 0, index = 0;
    each_step(in, [&](auto const&, shape from) {
      if (index > 0 && index % 2 == parity && from.size() > most) most = from.size();
      ++index;
    });
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
