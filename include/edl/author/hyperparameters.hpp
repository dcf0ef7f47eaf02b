// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "edl/author/members.hpp"
#include "edl/core/hyperparameter.hpp"
#include "edl/core/unpack.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"

namespace edl::author {

/// Hyperparameters of a model that declares none.
struct no_hyperparameters {};

namespace detail {

template <class T>
inline constexpr bool is_hyperparameter = settable<T>;
template <class T>
inline constexpr bool is_hyperparameter<hyperparameter<T>> = true;

template <class T>
consteval bool all_settable() {
  auto const of = []<class... M>(std::tuple<M*...> const&) {
    return (is_hyperparameter<std::remove_const_t<M>> && ...);
  };
  return of(decltype(members(std::declval<T&>())){});
}

}  // namespace detail

/// A struct whose members are numbers or `edl::hyperparameter`s.
template <class T>
concept hyperparameter_struct = std::is_aggregate_v<T> && std::default_initializable<T> && std::copyable<T> &&
                                (member_count<T> <= most_members) && detail::all_settable<T>();

namespace detail {

/// Whether these values are within their own bounds.
template <class T>
constexpr bool within_bounds(T const& values) {
  bool all = true;
  [[maybe_unused]] auto const one = [&]<class M>(M const& m) {
    if constexpr (!settable<M>) all = all && m.value >= m.least && m.value <= m.most;
  };
  edl::unpack([&](auto*... m) { (one(*m), ...); }, members(values));
  return all;
}

/// Whether the defaults are, if the compiler knows them.
template <hyperparameter_struct T>
constexpr bool defaults_fit() {
  if constexpr (requires { typename std::bool_constant<within_bounds(T{})>; })
    return within_bounds(T{});
  else
    return true;
}

}  // namespace detail

/// A model's own, or none.
template <class Model>
struct hyperparameters_of_model {
  using type = no_hyperparameters;
};
template <class Model>
  requires requires { typename Model::hyperparameters; }
struct hyperparameters_of_model<Model> {
  using type = typename Model::hyperparameters;
};
template <class Model>
using hyperparameters_of = typename hyperparameters_of_model<Model>::type;

/// The hyperparameters, with their current values.
template <hyperparameter_struct T>
train::hyperparameters describe(T const& values) {
  train::hyperparameters all;
  [[maybe_unused]] auto const one = [&]<class M>(M const& m) {
    std::string_view const name = member_names<T>[all.size()];
    if constexpr (settable<M>)
      all.push_back(train::describe(name, hyperparameter<M>{m}));
    else
      all.push_back(train::describe(name, m));
  };
  edl::unpack([&](auto*... m) { (one(*m), ...); }, members(values));
  return all;
}

/// The struct with these values.
template <hyperparameter_struct T>
T with_values(train::hyperparameters const& from) {
  T values;
  std::size_t i = 0;
  [[maybe_unused]] auto const one = [&]<class M>(M& m) {
    if constexpr (settable<M>)
      m = train::value_of<M>(from[i++]);
    else
      m.value = train::value_of<decltype(m.value)>(from[i++]);
  };
  edl::unpack([&](auto*... m) { (one(*m), ...); }, members(values));
  return values;
}

}  // namespace edl::author
