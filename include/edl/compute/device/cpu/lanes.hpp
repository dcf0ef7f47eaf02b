// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace edl::detail {

/// The bytes of a vector register: AVX has 32, NEON 16. Vectors that are wider go through memory.
#ifdef __aarch64__
inline constexpr std::size_t register_bytes = 16;
#else
inline constexpr std::size_t register_bytes = 32;
#endif

/// A vector register's worth of `T`s. It has the operators of a number, and a comparison of two chooses lane
/// by lane: a > b ? c : d. It is aligned as a register is: a template's argument is, whatever the type says,
/// so one that is not would be read as if it were. Where numbers lie anywhere, `load` and `store` read and
/// write them.
template <class T>
struct lanes {
  static constexpr std::size_t count = register_bytes / sizeof(T);
  typedef T type __attribute__((vector_size(register_bytes)));
};

/// The number that a vector, or a number, is made of.
template <class V>
struct lane {
  using type = std::remove_cvref_t<decltype(V{}[0])>;
};
template <std::floating_point T>
struct lane<T> {
  using type = T;
};

/// A vector wherever it lies.
template <class V>
struct __attribute__((packed, may_alias)) anywhere {
  V value;
};

template <class V, class T>
V load(T const* from) {
  return reinterpret_cast<anywhere<V> const*>(from)->value;
}

template <class V, class T>
void store(T* to, V const& v) {
  reinterpret_cast<anywhere<V>*>(to)->value = v;
}

typedef float eight_floats __attribute__((vector_size(32)));
typedef int eight_ints __attribute__((vector_size(32)));

/// The lanes below `valid` of a vector, and `others` in the rest.
template <class V>
V first_lanes(V const& v, std::size_t valid, V const& others) {
  using number = std::conditional_t<sizeof(v[0]) == 4, std::int32_t, std::int64_t>;
  typedef number numbers __attribute__((vector_size(sizeof(V))));
  auto const from_0 = []<std::size_t... K>(std::index_sequence<K...>) { return numbers{number(K)...}; };
  return from_0(std::make_index_sequence<sizeof(V) / sizeof(number)>()) < number(valid) ? v : others;
}

/// Some numbers, fewer than a vector has, and zeros.
template <class V, class T>
V load_first(T const* from, std::size_t valid) {
#ifdef __AVX2__
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<V>(__builtin_ia32_maskloadps256(reinterpret_cast<eight_floats const*>(from),
                                                         eight_ints{0, 1, 2, 3, 4, 5, 6, 7} < int(valid)));
#endif
  V v{};
  for (std::size_t k = 0; k < valid; ++k) v[k] = from[k];
  return v;
}

/// Stores the first lanes of a vector.
template <class V, class T>
void store_first(T* to, V const& v, std::size_t valid) {
#ifdef __AVX2__
  if constexpr (sizeof(T) == 4) {
    __builtin_ia32_maskstoreps256(reinterpret_cast<eight_floats*>(to),
                                  eight_ints{0, 1, 2, 3, 4, 5, 6, 7} < int(valid),
                                  std::bit_cast<eight_floats>(v));
    return;
  }
#endif
  for (std::size_t k = 0; k < valid; ++k) to[k] = v[k];
}

/// work.operator()<V>(index) for all of [0, n): V is a vector of `T`s, or `T` for those that are left over.
template <class T, class Work>
void by_lanes(std::size_t n, Work&& work) {
  using vector = typename lanes<T>::type;
  std::size_t i = 0;
  for (; i + lanes<T>::count <= n; i += lanes<T>::count) work.template operator()<vector>(i);
  for (; i < n; ++i) work.template operator()<T>(i);
}

}  // namespace edl::detail
