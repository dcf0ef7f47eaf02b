// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A layer whose input is ids. It says `takes_ids = true`, and has a `vocabulary`: ids are below it. Its
/// input is float32 always, which that of others is not on every device.
template <class L>
concept takes_ids = layer<L> && requires(L const& l) {
  requires L::takes_ids;
  { l.vocabulary + 0 } -> std::same_as<int>;
};

/// A container of which only the first child sees what comes in.
template <class L>
constexpr bool is_serial = [] {
  if constexpr (requires { L::serial; })
    return bool(L::serial);
  else
    return false;
}();

/// Whether a container's child number `index` is given what the container is. Of a serial one that is not
/// said.
template <layer L>
constexpr bool sees_input(L const& l, int index) {
  if constexpr (requires { l.sees_input(std::size_t(index)); })
    return l.sees_input(std::size_t(index));
  else
    return true;
}

/// A layer of ids that may have weights beside them, and of which a sample may lack some: those are -1. It
/// says `takes_weights = true`.
template <class L>
constexpr bool takes_weights = [] {
  if constexpr (requires { L::takes_weights; })
    return bool(L::takes_weights);
  else
    return false;
}();

/// Why a layer by itself cannot be given ids, or anything else.
template <layer L>
constexpr fit check_ids(bool ids, shape in) {
  if constexpr (takes_ids<L>) {
    if (!ids) return fit::takes_only_ids;
    return in.flat() || takes_weights<L> ? fit::fits : fit::takes_no_weights;
  } else if constexpr (!container<L>) {
    return ids ? fit::takes_no_ids : fit::fits;
  } else if constexpr (requires { L::reads_x; }) {  // besides its children
    return ids && L::reads_x ? fit::takes_no_ids : fit::fits;
  } else {
    return fit::fits;
  }
}

/// Whether a layer's result is ids, as a named input's may be.
template <layer L>
constexpr bool gives_ids = [] {
  if constexpr (requires { L::gives_ids; })
    return bool(L::gives_ids);
  else
    return false;
}();

/// Whether a layer, or one within it, has to do with ids.
template <layer L>
constexpr bool knows_ids(L const& l, shape in) {
  if constexpr (masks_places<L>) {
    return true;
  } else if constexpr (container<L>) {
    bool any = false;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      any = any || knows_ids(child, s);
      return true;
    });
    return any;
  } else {
    return takes_ids<L> || gives_ids<L>;
  }
}

/// Ids in the row of a sample.
struct id_range {
  int first = 0, count = 0;
  bool weighted = false;  ///< as many weights stand behind them
  bool length = false;    ///< it is a number of places, and no id

  constexpr bool empty() const { return count == 0; }
};

constexpr id_range ids_of(shape in, int first = 0) { return {first, in.channels, in.width > 1}; }

/// Calls visit(id_range, vocabulary, none) for each layer that takes ids, which are those of the range; with
/// `none`, an id may be -1. `seen`: what the layer is given. A length is as an id below length + 1.
template <layer L, class Visit>
constexpr void for_each_ids(L const& l, shape in, id_range seen, Visit const& visit) {
  if constexpr (takes_ids<L>) {
    if (!seen.empty()) visit(seen, l.vocabulary, takes_weights<L>);
  } else if constexpr (container<L>) {
    if constexpr (masks_places<L>)
      if (l.mask.by_length) visit(id_range{l.mask.first, 1, false, true}, l.mask.count + 1, false);
    id_range next = seen;
    int index = 0;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      for_each_ids(child, s, sees_input(l, index++) ? next : id_range{}, visit);
      if constexpr (is_serial<L>) {
        next = {};
        if constexpr (gives_ids<std::remove_cvref_t<decltype(child)>>)
          next = ids_of(child.output(s), child.first);
      }
      return true;
    });
  }
}

/// Calls visit(id_range, id) for each mask that is made of ids, with the id of places that are padding.
/// `seen`: ids that the layer is given.
template <layer L, class Visit>
constexpr void for_each_padding(L const& l, shape in, id_range seen, Visit const& visit) {
  if constexpr (container<L>) {
    if constexpr (masks_places<L>)
      if (!l.mask.by_length) visit(l.mask.row > 0 ? id_range{l.mask.first, l.mask.count} : seen, l.mask.id);
    id_range next = seen;
    int index = 0;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      for_each_padding(child, s, sees_input(l, index++) ? next : id_range{}, visit);
      if constexpr (is_serial<L>) {
        next = {};
        if constexpr (gives_ids<std::remove_cvref_t<decltype(child)>>)
          next = ids_of(child.output(s), child.first);
      }
      return true;
    });
  }
}

/// The smallest vocabulary of the layers that take the ids of a network which begins with ids alone; 0 where
/// none does.
template <layer L>
constexpr int vocabulary_of(L const& l, shape in) {
  int least = 0;
  for_each_ids(l, in, ids_of(in), [&](id_range, int of, bool) {
    least = least == 0 ? of : of < least ? of : least;
  });
  return least;
}

}  // namespace edl::nn
