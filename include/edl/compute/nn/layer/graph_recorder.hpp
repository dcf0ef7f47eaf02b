// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/layer/graph.hpp"

// A function is called twice. The first call is never evaluated. Its results' types list the kinds of all
// nodes that they depend on (`kinds`), so that the type of the function's result lists all of the graph's.
// The second call records the nodes (`recorder`).

namespace edl::nn::detail {

template <class All, class... More>
struct united {
  using type = All;
};
template <class All, class Kind, class... More>
struct united<All, Kind, More...> : united<typename All::template with<Kind>, More...> {};

/// Replaces a `recorder` in a call that is never evaluated.
struct no_recorder {
  constexpr int open() { return -1; }
  constexpr void extend(int) {}
  constexpr void use(int) {}
  constexpr int commit(int, int, auto const&) { return -1; }
  constexpr int put(auto const&, node_operands const&, int, int) { return -1; }
  constexpr int put_shared(auto const&, int, void const*) { return -1; }
  constexpr void check_same(no_recorder const*) {}
  constexpr shape shape_of(int) const { return {}; }
};

/// The nodes that the results of a function's first call depend on. `Sized`: the shape of the input is known.
template <bool Sized, class... Kinds>
struct kinds {
  using pointer = no_recorder*;
  static constexpr bool records = false, sized = Sized;
  template <class Kind>
  using with = std::conditional_t<(std::same_as<Kinds, Kind> || ...), kinds, kinds<Sized, Kinds..., Kind>>;
  template <class... Layers>
  using after = std::conditional_t<sizeof...(Layers) == 0, kinds, with<layers_of_node<"", 0, Layers...>>>;
  template <class... First>
  using onto = typename united<kinds<Sized, First...>, Kinds...>::type;
  template <class Other>
  using merged = typename Other::template onto<Kinds...>;
};

/// Records the nodes of a function's second call, and the first mistake.
template <bool Sized, class... Kinds>
class recorder {
 public:
  static constexpr bool records = true, sized = Sized;
  using pointer = recorder*;
  template <class>
  using with = recorder;
  template <class...>
  using after = recorder;
  template <class>
  using merged = recorder;
  using layer_type = graph_layer<Sized, Kinds...>;
  template <class T>
  using of_nodes = typename layer_type::template of_nodes<T>;
  using mistake_kind = expression::mistake_kind;

  constexpr explicit recorder(shape in) : in_(in) {}

  /// The number of a new result, which must be used.
  constexpr int open() {
    if (opened_ < int(fates_.size())) return opened_++;
    fail(mistake_kind::too_many_results);
    return -1;
  }
  /// Adds layers that follow an unnamed result to it.
  constexpr void extend(int number) {
    if (number >= 0 && fate(number) != unused) fail(mistake_kind::result_used_after_move);
    use(number);
  }
  /// Marks a result that is a node as used.
  constexpr void use(int number) {
    if (number >= 0) fate(number) = extended;
  }
  /// The node that a result becomes when it is first used.
  template <class Kind>
  constexpr int commit(int number, int source, Kind const& of) {
    if (number < 0) return put(of, {std::int16_t(source)}, 1);
    if (fate(number) == extended) fail(mistake_kind::result_used_after_move);
    if (fate(number) == unused) fate(number) = 1 + put(of, {std::int16_t(source)}, 1);
    return fate(number) - 1;
  }
  template <class Kind>
  constexpr int put(Kind const& of, node_operands const& from, int operands, int line = 0) {
    constexpr int index = index_of<Kind>();
    if (built_.size == layer_type::most) fail(mistake_kind::too_many_results);
    if (index < 0) fail(mistake_kind::unused_result);  // no result of the function depends on it
    if constexpr (index >= 0)
      if (built_.size < layer_type::most) {
        built_.nodes[std::size_t(built_.size)] = {
            {std::integral_constant<int, index>{}, of}, from, operands, built_.size, line};
        return built_.size++;
      }
    return -1;
  }
  /// The same for named layers, which are this object; null: a new one each time.
  template <class Kind>
  constexpr int put_shared(Kind const& of, int source, void const* object) {
    for (int k = 0; k < built_.size; ++k)
      if (names_[std::size_t(k)] == Kind::role && (!object || objects_[std::size_t(k)] != object))
        fail(mistake_kind::name_of_shared, index_of<Kind>());
    int const k = put(of, {std::int16_t(source)}, 1);
    if (k < 0) return k;
    names_[std::size_t(k)] = Kind::role;
    objects_[std::size_t(k)] = object;
    return k;
  }
  constexpr void check_same(recorder const* scope) {
    if (scope != this) fail(mistake_kind::result_of_another_graph);
  }
  constexpr shape shape_of(int node) const { return node < 0 ? in_ : built_.measure(in_)[node].out; }

  /// The graph whose result is this node, with nodes in the order in which it needs them.
  constexpr layer_type finish(int result) {
    layer_type ordered;
    moved_.fill(-1);
    if (result >= 0 && built_.mistaken.none()) move(result, ordered);
    for (int k = 0; k < built_.size; ++k)
      if (moved_[std::size_t(k)] < 0) fail(mistake_kind::unused_result, built_.node(k).what.index());
    for (int i = 0; i < opened_; ++i)
      if (fate(i) == unused) fail(mistake_kind::unused_result);
    if (result < 0) fail(mistake_kind::no_layer_in_graph);
    ordered.mistaken = built_.mistaken;
    ordered.mistaken_kind = built_.mistaken_kind;
    return ordered;
  }

 private:
  static constexpr int unused = 0, extended = -1;  // or the number of a node + 1

  template <class Kind>
  static constexpr int index_of() {
    int index = 0, found = -1;
    ((std::same_as<Kinds, Kind> ? void(found = index++) : void(++index)), ...);
    return found;
  }
  constexpr int& fate(int number) { return fates_[std::size_t(number)]; }
  constexpr void fail(mistake_kind what, int kind = -1) {
    if (!built_.mistaken.none()) return;
    built_.mistaken.what = what;
    built_.mistaken_kind = kind;
  }
  constexpr int move(int from, layer_type& to) {
    int& at = moved_[std::size_t(from)];
    if (at >= 0) return at;
    auto n = built_.node(from);
    for (int i = 0; i < n.operands; ++i)
      if (auto& of = n.from[std::size_t(i)]; of >= 0) of = std::int16_t(move(of, to));
    at = n.owner = to.size;
    auto const name = names_[std::size_t(from)];
    for (std::size_t k = 0; !name.empty() && k < names_.size(); ++k)
      if (names_[k] == name && moved_[k] >= 0) n.owner = std::min(n.owner, moved_[k]);
    to.nodes[std::size_t(to.size++)] = n;
    return at;
  }

  shape in_;
  layer_type built_{};
  of_nodes<std::string_view> names_{};
  of_nodes<void const*> objects_{};
  of_nodes<int> moved_{};  // the nodes' positions in the graph's order
  std::array<int, std::size_t(4 * layer_type::most)> fates_{};
  int opened_ = 0;
};

}  // namespace edl::nn::detail
