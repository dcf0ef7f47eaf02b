// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>

#include "edl/compute/nn/input.hpp"
#include "edl/compute/nn/layer/input_slice.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/literal.hpp"
#include "edl/compute/nn/padding_mask.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// An input with a name, and with the name of its table, if it is rows of one.
template <literal Name, class Kind, literal Table = Name>
struct named_input {
  using kind = Kind;
  static constexpr std::string_view name = Name.view(), table = Table.view();

  Kind spec;
};

/// Gives an input its name: `input<"age">(features{.count = 1})`. A served embedding's table has that name,
/// too. Inputs that share a table name it: `input<"history", "items">(…)`.
template <literal Name, literal Table = Name, class Kind>
  requires requires(Kind k) {
    { k.input() } -> std::same_as<shape>;
  }
constexpr named_input<Name, Kind, Table> input(Kind of) {
  return {of};
}

/// An input without a name.
template <class Kind>
constexpr named_input<"input", Kind> input(Kind of) {
  static_assert(sizeof(Kind) == 0, "edl: this input has no name: `edl::nn::input<\"age\">(...)`");
  return {of};
}

/// Used instead of a missing `input`. Instantiated so that the compiler's message shows its name.
template <literal Name>
struct names_an_input {
  static constexpr bool value = false;
};

/// Used instead of a missing `ids` or `length`, for the same reason.
template <class Kind>
struct names_places {
  static constexpr bool value = false;
};

/// Several named inputs of one network, side by side in the row of a sample. Write it as `inputs(…)`, pass it
/// to `sequential` as the network's start, and begin branches with `from`.
template <class... Named>
struct input_list {
  std::tuple<Named...> all;

  /// The row: all inputs, one after the other.
  constexpr shape input() const {
    return {1, 1, edl::unpack([](auto const&... n) { return (0 + ... + int(n.spec.input().size())); }, all)};
  }

  template <literal Name>
  static constexpr std::size_t index_of = [] {
    std::size_t index = 0, found = sizeof...(Named);
    ((Named::name == Name.view() ? void(found = index++) : void(++index)), ...);
    return found;
  }();

  template <literal Name>
  static constexpr bool has = index_of<Name> < sizeof...(Named);

  /// The input with this name: its offset in the row, and its kind.
  template <literal Name>
  constexpr int first_of() const {
    int first = 0;
    std::size_t index = 0;
    edl::unpack(
        [&](auto const&... n) {
          ((index++ < index_of<Name> ? first += int(n.spec.input().size()) : 0), ...);
        },
        all);
    return first;
  }

  /// Number of ids of a sample that all inputs before this one look up in tables, and of all inputs.
  template <literal Name>
  constexpr int first_id_of() const {
    int first = 0;
    std::size_t index = 0;
    edl::unpack(
        [&](auto const&... n) { ((index++ < index_of<Name> ? first += ids_of_sample(n.spec) : 0), ...); },
        all);
    return first;
  }
  constexpr int ids() const {
    return edl::unpack([](auto const&... n) { return (0 + ... + ids_of_sample(n.spec)); }, all);
  }

  template <literal Name>
  constexpr auto kind_of() const {
    static_assert(has<Name> || names_an_input<Name>::value, "edl: the network has no input of this name");
    return std::get<index_of<Name>>(all).spec;
  }

  /// The mask for `masked`: places of `ids` with this id are padding, or places after a `length`.
  template <literal Name>
  constexpr padding_mask mask(int id = 0) const {
    static_assert(has<Name> || names_an_input<Name>::value, "edl: the network has no input of this name");
    padding_mask of{.id = id, .row = int(input().size())};
    if constexpr (has<Name>) {
      auto const kind = kind_of<Name>();
      using kind_type = std::remove_cvref_t<decltype(kind)>;
      constexpr bool by_length = std::same_as<kind_type, nn::length>,
                     by_ids = std::same_as<kind_type, nn::ids>;
      static_assert(by_length || by_ids || names_places<kind_type>::value,
                    "edl: a mask is made of an input of `nn::ids`, or of an `nn::length`");
      of.by_length = by_length;
      of.first = first_of<Name>();
      if constexpr (by_length) of.count = kind.most;
      if constexpr (by_ids) of.count = kind.count;
    }
    return of;
  }

  /// A branch that begins with the input with this name. Join branches with `concat` and `sum`.
  template <literal Name, class... Layers>
  constexpr auto from(Layers... layers) const {
    static_assert(has<Name> || names_an_input<Name>::value, "edl: the network has no input of this name");
    if constexpr (has<Name>) {
      auto const kind = kind_of<Name>();
      using kind_type = std::remove_cvref_t<decltype(kind)>;
      return sequential(input_slice<holds_ids<kind_type>>{first_of<Name>(), input(), kind.input()},
                        layers...);
    } else {
      return sequential(layers...);
    }
  }
};

/// Number of ids of a sample that a network with this start looks up in tables.
template <class Start>
constexpr int table_ids(Start const&) {
  return 0;
}
template <class... Named>
constexpr int table_ids(input_list<Named...> const& all) {
  return all.ids();
}

/// Whether all inputs have valid sizes.
template <class... Named>
constexpr bool sizes_fit(input_list<Named...> const& all) {
  return edl::unpack([](auto const&... n) { return (true && ... && sizes_fit(n.spec)); }, all.all);
}

/// Whether the options of all inputs that are rows of tables are valid.
template <class... Named>
constexpr bool table_options_fit(input_list<Named...> const& all) {
  return edl::unpack([](auto const&... n) { return (true && ... && table_options_fit(n.spec)); }, all.all);
}

/// Whether inputs that share a table agree on the width and the policy of its rows.
template <class Start>
constexpr bool tables_agree(Start const&) {
  return true;
}
template <class... Named>
constexpr bool tables_agree(input_list<Named...> const& all) {
  bool agree = true;
  auto const compare = [&](auto const& a, auto const& b) {
    if constexpr (holds_rows<std::remove_cvref_t<decltype(a.spec)>> &&
                  holds_rows<std::remove_cvref_t<decltype(b.spec)>>)
      agree = agree && (a.table != b.table || (a.spec.width == b.spec.width && a.spec.rows == b.spec.rows));
  };
  edl::unpack(
      [&](auto const&... a) {
        (..., [&](auto const& one) {
          edl::unpack([&](auto const&... b) { (compare(one, b), ...); }, all.all);
        }(a));
      },
      all.all);
  return agree;
}

/// The inputs of a network, e.g. `inputs(input<"numbers">(features{.count = 5}), input<"words">(ids{.count =
/// 9}))`. Names must be distinct.
template <literal... Names, class... Kinds, literal... Tables>
constexpr input_list<named_input<Names, Kinds, Tables>...> inputs(named_input<Names, Kinds, Tables>... all) {
  constexpr auto twins = [] {
    std::string_view const names[] = {Names.view()...};
    for (auto const& one : names)
      if (std::ranges::count(names, one) > 1) return true;
    return false;
  };
  static_assert(!twins(), "edl: two inputs of the network have the same name");
  return {{all...}};
}

}  // namespace edl::nn
