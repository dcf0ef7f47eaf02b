// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "edl/nn/layer.hpp"

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

/// Why a layer by itself cannot be given ids, or anything else.
template <layer L>
constexpr fit check_ids(bool ids) {
  if constexpr (takes_ids<L>) {
    return ids ? fit::fits : fit::takes_only_ids;
  } else if constexpr (!container<L>) {
    return ids ? fit::takes_no_ids : fit::fits;
  } else if constexpr (requires { L::reads_x; }) {  // besides its children
    return ids && L::reads_x ? fit::takes_no_ids : fit::fits;
  } else {
    return fit::fits;
  }
}

/// The smallest vocabulary of those within a layer that take ids: all ids of a network are below it; 0 where
/// none does.
template <layer L>
constexpr int vocabulary_of(L const& l, shape in) {
  if constexpr (takes_ids<L>) {
    return l.vocabulary;
  } else if constexpr (container<L>) {
    int least = 0;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      int const of = vocabulary_of(child, s);
      if (of > 0 && (least == 0 || of < least)) least = of;
      return true;
    });
    return least;
  } else {
    return 0;
  }
}

}  // namespace edl::nn
