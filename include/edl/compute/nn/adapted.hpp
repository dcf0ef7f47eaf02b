// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/batch_norm.hpp"
#include "edl/compute/nn/layer/frozen.hpp"
#include "edl/compute/nn/layer/low_rank.hpp"
#include "edl/compute/nn/layer/masked.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/layer/repeat.hpp"
#include "edl/compute/nn/layer/residual.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/layer/tied.hpp"
#include "edl/compute/nn/literal.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {
namespace detail {

/// Whether a list of names, separated by ',', has this one.
constexpr bool lists(std::string_view names, std::string_view one) {
  if (one.empty()) return false;
  for (;;) {
    auto const end = names.find(',');
    if (names.substr(0, end) == one) return true;
    if (end == names.npos) return false;
    names.remove_prefix(end + 1);
  }
}

/// Not constexpr, so that the compiler's error shows its name.
inline void a_name_in_targets_is_of_no_layer() {}

/// Whether a layer has variables.
template <class L>
constexpr bool has_variables = requires(L const& l, void (*visit)(variable_spec const&)) {
  l.variables(shape{}, variable_visitor{visit});
};
template <class L>
constexpr bool has_variables<derived<L>> =
    expression::compiled<L>::operations.variable_count + derived<L>::statistics > 0;

template <class L>
inline constexpr bool has_statistics = std::same_as<L, batch_norm>;
template <class L>
inline constexpr bool has_statistics<derived<L>> = derived<L>::statistics > 0;

/// Instantiated for a layer that cannot be frozen.
template <class L>
struct freezes {
  static constexpr bool keeps_statistics = has_statistics<L>;
  static constexpr bool value = !container<L> && !keeps_statistics;
  static_assert(!keeps_statistics,
                "edl: `nn::adapted` takes no network with an `nn::batch_norm` or another layer with running "
                "statistics");
  static_assert(value || keeps_statistics,
                "edl: `nn::adapted` takes layers within `sequential`, `named`, `repeat`, `residual`, `tied`, "
                "`masked`, `concat`, `sum` and `product`, and not within this container");
};

/// Makes the layers of a network frozen ones, and gives some of them adapters.
struct adapting {
  low_rank how;
  bool inside = false;  ///< of a container or layer among the targets

  constexpr adapting within(std::string_view name) const { return {how, inside || lists(how.targets, name)}; }

  template <layer... Ls>
  constexpr auto operator()(chain<Ls...> const& c) const {
    return edl::unpack([&](auto const&... l) { return chain<decltype((*this)(l))...>{{(*this)(l)...}}; },
                       c.layers);
  }
  template <literal Name, layer... Ls>
  constexpr auto operator()(named_chain<Name, Ls...> const& c) const {
    auto const as = within(Name.view());
    return edl::unpack([&](auto const&... l) { return named_chain<Name, decltype(as(l))...>{{{as(l)...}}}; },
                       c.layers);
  }
  template <class... Ls>
  constexpr auto operator()(tied_chain<Ls...> const& c) const {
    return edl::unpack(
        [&](auto const&... l) { return tied_chain<decltype((*this)(l))...>{{{(*this)(l)...}}}; }, c.layers);
  }
  template <layer... Ls>
  constexpr auto operator()(masked_chain<Ls...> const& c) const {
    return edl::unpack(
        [&](auto const&... l) {
          return masked_chain<decltype((*this)(l))...>{{{(*this)(l)...}}, c.mask, c.of_network};
        },
        c.layers);
  }
  template <merge How, layer... Ls>
  constexpr auto operator()(parallel<How, Ls...> const& c) const {
    return edl::unpack(
        [&](auto const&... l) { return parallel<How, decltype((*this)(l))...>{{(*this)(l)...}}; },
        c.branches);
  }
  template <layer Body, layer Projection>
  constexpr auto operator()(shortcut<Body, Projection> const& c) const {
    return shortcut<decltype((*this)(c.body)), decltype((*this)(c.projection))>{(*this)(c.body),
                                                                                (*this)(c.projection)};
  }
  template <layer L>
  constexpr auto operator()(L const& l) const {
    if constexpr (requires { l.adaptables(shape{}); }) {
      low_rank_layer<L> made{{l}, how, {}};
      auto const as = within(name_of<L>());
      auto const all = l.adaptables({1, 1, 1});
      for (std::size_t i = 0; i < all.size(); ++i) made.adapts[i] = as.within(all[i].name).inside;
      return made;
    } else if constexpr (!container<L> && !has_variables<L>) {
      return l;
    } else {
      static_cast<void>(freezes<L>::value);  // its assertions tell what is wrong
      return frozen_layer<L>{l};
    }
  }

  /// Whether a name is of an adapter's matrix, or of a layer or container around one.
  template <layer L>
  static constexpr bool finds(L const& l, shape in, std::string_view name, bool inside = false) {
    if (name.empty()) return false;
    bool found = false;
    inside = inside || name_of<L>() == name;
    if constexpr (container<L>)
      l.children(in, [&](auto const& child, shape s, std::string_view) {
        found = finds(child, s, name, inside);
        return !found;
      });
    else if constexpr (requires { l.adaptables(in); })
      for (adaptable const& of : l.adaptables(in)) found = found || inside || of.name == name;
    return found;
  }
  template <layer L>
  constexpr void check(L const& l, shape in) const {
    for (std::string_view rest = how.targets;;) {
      auto const end = rest.find(',');
      if (!finds(l, in, rest.substr(0, end))) a_name_in_targets_is_of_no_layer();
      if (end == rest.npos) return;
      rest.remove_prefix(end + 1);
    }
  }
};

template <class First, class... Old, class... New>
constexpr network<First, New...> network_of(network<First, Old...> const& from, chain<New...> const& body) {
  return {from.input, body, from.of_ids, from.start};
}
template <class First, class... Old, class... New>
constexpr auto network_of(network<First, Old...> const& from, tied_chain<New...> const& body) {
  return network<First, tied_chain<New...>>{from.input, body, from.of_ids, from.start};
}

}  // namespace detail

/// A network whose variables are frozen, with trained adapters of some of its matrices. Frozen variables keep
/// their names. The network may be any of layers one after the other, and their containers; not one that is a
/// function.
template <class First, class... Layers>
constexpr auto adapted(network<First, Layers...> const& of, low_rank how = {}) {
  if (of.body.check(of.input) == fit::fits) detail::adapting{how}.check(of.body, of.input);
  return detail::network_of(of, detail::adapting{how}(of.body));
}

/// The adapters' options; those of no adapter without any.
template <layer L>
constexpr low_rank adapters_of(L const& l, shape in) {
  low_rank found{.rank = 0};
  if constexpr (container<L>)
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      found = adapters_of(child, s);
      return found.rank == 0;
    });
  else if constexpr (requires { L::is_low_rank; })
    found = l.adapters;
  return found;
}

/// Adds a network's adapters, of which `parameters` are the values, to its frozen variables: the network that
/// was adapted then gives the same outputs, up to rounding.
template <layer L, class T>
void merge_adapters(L const& l, shape in, view<T> parameters, std::span<T> frozen) {
  if constexpr (container<L>) {
    carver own(parameters);
    carver kept(frozen);
    for_each_owner(l, in, [&](auto const& child, shape s, std::string_view) {
      auto const n = count(child, s);
      merge_adapters(child, s, view<T>(own.next(n.parameters)), kept.next(n.frozen));
      return true;
    });
  } else if constexpr (requires { L::is_low_rank; }) {
    l.merge(in, parameters, frozen);
  }
}

}  // namespace edl::nn
