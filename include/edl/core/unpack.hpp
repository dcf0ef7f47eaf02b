// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

namespace edl {
namespace detail {

template <class F, class Tuple, std::size_t... I>
constexpr decltype(auto) unpack_at(F const& f, Tuple const& of, std::index_sequence<I...>) {
  return f(std::get<I>(of)...);
}

}  // namespace detail

/// Calls `f` with the elements of a tuple and returns what it returns, like std::apply. A network makes
/// thousands of such calls, and std::apply first works out for each whether it may throw, which is as much
/// work for a compiler as the call.
template <class F, class Tuple>
constexpr decltype(auto) unpack(F const& f, Tuple const& of) {
  return detail::unpack_at(f, of, std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}

}  // namespace edl
