// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace edl::author {

/// Largest number of members of an aggregate without bases that `members` supports.
inline constexpr std::size_t most_members = 16;

namespace detail {

/// Converts to any member in a list that initialises a struct.
struct any_member {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class T, class... Members>
consteval std::size_t count_members() {
  if constexpr (requires { T{Members{}..., any_member{}}; })
    return count_members<T, Members..., any_member>();
  else
    return sizeof...(Members);
}

}  // namespace detail

/// The number of members of an aggregate.
template <class T>
inline constexpr std::size_t member_count = detail::count_members<T>();

/// Pointers to the members of an aggregate, in their order. One structured binding for each number of
/// members: C++20 has no other way.
template <class T>
constexpr auto members([[maybe_unused]] T& of) {
  constexpr std::size_t count = member_count<std::remove_const_t<T>>;
  [[maybe_unused]] auto const pointers = [](auto&... m) {
    return std::tuple<std::add_pointer_t<decltype(m)>...>(&m...);
  };
  if constexpr (count == 0 || count > 16) {  // none, or too many
    return std::tuple<>();
  } else if constexpr (count == 1) {
    auto& [a] = of;
    return pointers(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = of;
    return pointers(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = of;
    return pointers(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = of;
    return pointers(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = of;
    return pointers(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = of;
    return pointers(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = of;
    return pointers(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = of;
    return pointers(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = of;
    return pointers(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = of;
    return pointers(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

namespace detail {

/// An object without a definition: its members have addresses, which the compiler can spell.
template <class T>
struct nowhere_type {
  T const value;
};
template <class T>
extern nowhere_type<T> const nowhere;

// Some compilers accept the address of a member as a template argument only within a struct.
template <class T>
struct pointer {
  T const* to;
};
template <class T>
constexpr pointer<T> wrapped(T const* to) {
  return {to};
}

// The object is never read, so it needs no definition.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
template <auto Pointer>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}

struct probe {
  int known;
};

/// The text that this compiler writes after the name of a member.
inline constexpr std::size_t behind_name = [] {
  std::string_view const all = spelled<wrapped(&nowhere<probe>.value.known)>(), name = "known";
  return all.size() - all.rfind(name) - name.size();
}();

constexpr std::string_view last_name(std::string_view spelt) {
  spelt.remove_suffix(behind_name);
  std::size_t first = spelt.size();
  auto const in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c & 0x80) != 0;
  };
  while (first > 0 && in_name(spelt[first - 1])) --first;
  return spelt.substr(first);
}

template <class T, std::size_t... I>
constexpr auto names_of(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{
      last_name(spelled<wrapped(std::get<I>(members(nowhere<T>.value)))>())...};
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace detail

/// The names of an aggregate's members, in their order, as the compiler spells them.
template <class T>
inline constexpr auto member_names = detail::names_of<T>(std::make_index_sequence<member_count<T>>());

}  // namespace edl::author
