// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A layer whose input is ids. It declares `takes_ids = true`, and a `vocabulary`: ids are below it. Its
/// input is always float32, unlike that of other layers on some devices.
template <class L>
concept takes_ids = layer<L> && requires(L const& l) {
  requires L::takes_ids;
  { l.vocabulary + 0 } -> std::same_as<int>;
};

/// A container whose input only the first child reads.
template <class L>
constexpr bool is_serial = [] {
  if constexpr (requires { L::serial; })
    return bool(L::serial);
  else
    return false;
}();

/// Whether a container's child number `index` gets the container's input. Serial containers do not declare
/// that.
template <layer L>
constexpr bool sees_input(L const& l, int index) {
  if constexpr (requires { l.sees_input(std::size_t(index)); })
    return l.sees_input(std::size_t(index));
  else
    return true;
}

/// A layer of ids that may have weights; missing ids of a sample are -1. It declares `takes_weights = true`.
template <class L>
constexpr bool takes_weights = [] {
  if constexpr (requires { L::takes_weights; })
    return bool(L::takes_weights);
  else
    return false;
}();

/// Why a layer by itself cannot take ids, or anything else.
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

/// Whether a layer, or one within it, reads or gives ids.
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
  bool weighted = false;  ///< followed by as many weights
  bool length = false;    ///< it is a number of places, not an id

  constexpr bool empty() const { return count == 0; }
};

constexpr id_range ids_of(shape in, int first = 0) { return {first, in.channels, in.width > 1}; }

/// Calls visit(id_range, vocabulary, none) for each layer that takes ids, with their range; with `none`, an
/// id may be -1. `seen`: the layer's input. A length counts as an id below length + 1.
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

/// Calls visit(id_range, id) for each mask of ids, with the id that marks padding. `seen`: the layer's ids.
template <layer L, class Visit>
constexpr void for_each_padding(L const& l, shape in, id_range seen, Visit const& visit) {
  if constexpr (container<L>) {
    if constexpr (masks_places<L>)
      if (auto const& m = l.mask; !m.by_length)
        visit(m.row > 0 ? id_range{m.first, m.count > 0 ? m.count : m.row} : seen, m.id);
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

/// The smallest vocabulary of the layers that take the ids of a network whose only input is ids; 0 if none
/// does.
template <layer L>
constexpr int vocabulary_of(L const& l, shape in) {
  int least = 0;
  for_each_ids(l, in, ids_of(in), [&](id_range, int of, bool) {
    least = least == 0 ? of : of < least ? of : least;
  });
  return least;
}

}  // namespace edl::nn
