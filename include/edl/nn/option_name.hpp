// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>

namespace edl::nn {

/// Options of layers and optimisers that other frameworks call otherwise, or that are easily misspelt.
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
  use_bias,
  learning_rate
};

/// The type of a member that has another name of an option. It stands beside the option in a union, so that
/// it may be written where the option may: `union { int units = 0; called<option::units> unit, neurons; };`.
/// Nothing can initialise it, and the compiler says what the option is called.
template <option Is>
struct called {
  called() = default;
  template <class T>
  constexpr called(T const&) {  // NOLINT(google-explicit-constructor)
    static_assert(!is<T>(option::units), "edl: this option is called `units`");
    static_assert(!is<T>(option::filters), "edl: this option is called `filters`");
    static_assert(!is<T>(option::kernel), "edl: this option is called `kernel`");
    static_assert(!is<T>(option::stride), "edl: this option is called `stride`");
    static_assert(!is<T>(option::window), "edl: this option is called `window`");
    static_assert(!is<T>(option::rate), "edl: this option is called `rate`");
    static_assert(!is<T>(option::epsilon), "edl: this option is called `epsilon`");
    static_assert(!is<T>(option::heads), "edl: this option is called `heads`");
    static_assert(!is<T>(option::vocabulary), "edl: this option is called `vocabulary`");
    static_assert(!is<T>(option::width), "edl: this option is called `width`");
    static_assert(!is<T>(option::use_bias), "edl: this option is called `use_bias`");
    static_assert(!is<T>(option::learning_rate), "edl: this option is called `learning_rate`");
  }

 private:
  template <class T>
  static constexpr bool is(option of) {
    return Is == of && sizeof(T) > 0;
  }
};

/// The type of the member `activation` of a layer that takes none, which Keras's layers do. Nothing can
/// initialise it, and the compiler says what to write instead.
struct no_activation {
  no_activation() = default;
  template <class T>
  constexpr no_activation(T const&) {  // NOLINT(google-explicit-constructor)
    static_assert(sizeof(T) == 0,
                  "edl: this layer has no `activation`: write the activation as the next layer, as "
                  "`edl::nn::relu{}`");
  }
};

template <class>
inline constexpr bool is_called = false;
template <option Is>
inline constexpr bool is_called<called<Is>> = true;

/// Reads the options of a layer and of what it is made of, as far as it says that by the members of edl's
/// containers. No constant comes of it where an option was given by another name. Returns true.
template <class L>
constexpr bool read_options(L const& l) {
  bool all = true;
  auto const each = [&](auto const&... within) { all = (all && ... && read_options(within)); };
  // What is an option of one layer may be another name of an option of the next.
  auto const read = []<class T>(T const& given) {
    if constexpr (is_called<T>)
      return true;
    else
      return [](auto) { return true; }(given);
  };
  if constexpr (requires { std::tuple_size<std::remove_cvref_t<decltype(l.layers)>>::value; })
    std::apply(each, l.layers);
  if constexpr (requires { std::tuple_size<std::remove_cvref_t<decltype(l.branches)>>::value; })
    std::apply(each, l.branches);
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
