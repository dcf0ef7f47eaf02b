// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "edl/compute/nn/input.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/padding_mask.hpp"
#include "edl/compute/nn/plan.hpp"
#include "edl/core/random.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Whether minibatches of a network with this start may be shorter than its longest sample.
template <class Start>
constexpr bool plans_lengths(Start const& start) {
  if constexpr (std::same_as<Start, ids>)
    return std::ranges::any_of(start.lengths, [](int l) { return l != 0; });
  else
    return false;
}

/// The least planned length with at least this many places.
constexpr int planned_length(ids const& start, int places) {
  int least = start.count;
  for (int const l : start.lengths)
    if (l > 0 && l >= places && l < least) least = l;
  return least;
}

/// Places of the longest of some samples, up to the last one that is not padding. A sample is `count` ids.
template <class T>
constexpr int longest_of(padding_mask const& mask, view<T> ids, int count) {
  int longest = 0;
  for (std::size_t first = 0; first < ids.size(); first += std::size_t(count))
    for (int place = count; place > longest; --place)
      if (mask.counts(ids.data() + first, std::size_t(place) - 1)) longest = place;
  return longest;
}

namespace detail {

/// A hash of a layer's set of variables: different sets have different numbers, except for collisions.
template <layer L>
constexpr std::uint64_t digest_of_variables(L const& l, shape in) {
  std::uint64_t digest = 0;
  for_each_variable(l, in, [&](variable_spec const& v) {
    for (int const extent : v.dims.sizes) digest = mix(digest, std::uint64_t(extent));
    digest = mix(digest, v.trained);
  });
  return digest;
}

/// The mask that says where a sample of a network of ids ends: that of its first layer, or that of all in its
/// function.
template <class Net>
constexpr std::optional<padding_mask> mask_at_start(Net const& net) {
  auto const& first = std::get<0>(net.body.layers);
  std::optional<padding_mask> found;
  bool same = true;
  if constexpr (masks_places<std::remove_cvref_t<decltype(first)>>)
    found = first.mask;
  else if constexpr (requires { first.masks([](padding_mask const&) {}); })
    first.masks([&](padding_mask const& m) {
      same = same && found.value_or(m) == m;
      found = m;
    });
  return same ? found : std::nullopt;
}

}  // namespace detail

/// Mistakes in the lengths of a network.
enum class lengths_fault {
  none,
  out_of_range,    ///< one is not from 1 to `count` − 1
  not_masked,      ///< no layer is `masked`, or not by one id, so the end of a sample is unknown
  sees_padding,    ///< a later layer sees all places, including padding
  other_variables  ///< a variable has another size at another length
};

template <class Net>
constexpr lengths_fault fault_of_lengths(Net const& net) {
  if constexpr (requires { net.start.lengths; }) {
    if (!plans_lengths(net.start)) return lengths_fault::none;
    if (!detail::mask_at_start(net)) return lengths_fault::not_masked;
    if (find_misfit(net.body, net.input, true, net.start.count).why != fit::fits)
      return lengths_fault::sees_padding;
    for (int const l : net.start.lengths) {
      if (l == 0) continue;
      if (l < 0 || l >= net.start.count) return lengths_fault::out_of_range;
      shape const in{1, 1, l};
      if (net.body.check(in) != fit::fits ||
          detail::digest_of_variables(net.body, in) != detail::digest_of_variables(net.body, net.input))
        return lengths_fault::other_variables;
    }
  }
  return lengths_fault::none;
}

/// The mask that such a network begins with.
template <class Net>
constexpr padding_mask mask_of_lengths(Net const& net) {
  return *detail::mask_at_start(net);
}

}  // namespace edl::nn
