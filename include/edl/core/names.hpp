// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace edl {

/// The name of an enumeration's value in flags and logs. `names(E)`, beside the enumeration, lists the names
/// in the order of the values.
template <class E>
constexpr std::string_view name_of(E value) {
  return names(value)[std::size_t(value)];
}

/// The value with this name; nothing if there is none.
template <class E>
constexpr std::optional<E> value_of(std::string_view name) {
  auto const& all = names(E{});
  auto const at = std::find(all.begin(), all.end(), name);
  return at == all.end() ? std::nullopt : std::optional(E(at - all.begin()));
}

}  // namespace edl
