// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

namespace edl::nn {

/// Options of layers that other frameworks, or fingers, give another name.
enum class option {
  units,
  filters,
  kernel,
  stride,
  window,
  rate,
  epsilon,
  heads,
  vocabulary,
  width,
  use_bias
};

/// The type of a member that has another name of an option. It stands beside the option in a union, so that
/// it may be written where the option may: `union { int units = 0; called<option::units> unit, neurons; };`.
/// Nothing can initialise it, and the compiler says what the option is called.
template <option Is>
struct called {
  template <class T>
  constexpr called(T const&) {  // NOLINT(google-explicit-constructor)
    static_assert(!is<T>(option::units), "edl: this option of a layer is called `units`");
    static_assert(!is<T>(option::filters), "edl: this option of a layer is called `filters`");
    static_assert(!is<T>(option::kernel), "edl: this option of a layer is called `kernel`");
    static_assert(!is<T>(option::stride), "edl: this option of a layer is called `stride`");
    static_assert(!is<T>(option::window), "edl: this option of a layer is called `window`");
    static_assert(!is<T>(option::rate), "edl: this option of a layer is called `rate`");
    static_assert(!is<T>(option::epsilon), "edl: this option of a layer is called `epsilon`");
    static_assert(!is<T>(option::heads), "edl: this option of a layer is called `heads`");
    static_assert(!is<T>(option::vocabulary), "edl: this option of a layer is called `vocabulary`");
    static_assert(!is<T>(option::width), "edl: this option of a layer is called `width`");
    static_assert(!is<T>(option::use_bias), "edl: this option of a layer is called `use_bias`");
  }

 private:
  template <class T>
  static constexpr bool is(option of) {
    return Is == of && sizeof(T) > 0;
  }
};

/// Reads the options of a layer and of what it is made of, as far as it says that by the members of edl's
/// containers. No constant comes of it where an option was given by another name. Returns true.
template <class L>
constexpr bool read_options(L const& l) {
  bool all = true;
  auto const each = [&](auto const&... within) { all = (all && ... && read_options(within)); };
  auto const read = [](auto const& option) { return [](auto) { return true; }(option); };
  if constexpr (requires { std::apply(each, l.layers); }) std::apply(each, l.layers);
  if constexpr (requires { std::apply(each, l.branches); }) std::apply(each, l.branches);
  if constexpr (requires { each(l.body, l.projection); }) each(l.body, l.projection);
  if constexpr (requires { l.units; }) all = all && read(l.units);
  if constexpr (requires { l.filters; }) all = all && read(l.filters);
  if constexpr (requires { l.kernel; }) all = all && read(l.kernel);
  if constexpr (requires { l.stride; }) all = all && read(l.stride);
  if constexpr (requires { l.window; }) all = all && read(l.window);
  if constexpr (requires { l.rate; }) all = all && read(l.rate);
  if constexpr (requires { l.epsilon; }) all = all && read(l.epsilon);
  if constexpr (requires { l.heads; }) all = all && read(l.heads);
  if constexpr (requires { l.vocabulary; }) all = all && read(l.vocabulary);
  if constexpr (requires { l.width; }) all = all && read(l.width);
  if constexpr (requires { l.use_bias; }) all = all && read(l.use_bias);
  return all;
}

}  // namespace edl::nn
