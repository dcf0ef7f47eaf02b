// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/layer/graph.hpp"
#include "edl/compute/nn/layer/graph_recorder.hpp"
#include "edl/compute/nn/layer/input_slice.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/layer_parts.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// Named layers that share variables wherever a function uses them. Write it as `shared<"name">(…)`.
template <literal Name, layer... Layers>
struct shared_layers {
  chain<Layers...> body;
};

/// Layers that a function of `graph` may use several times, with variables under this name: `auto const tower
/// = nn::shared<"tower">(dense{.units = 8}, relu{});`, then `a | tower` and `b | tower`. The gradients of its
/// variables add up. The running statistics of a batch normalisation are updated once for each use. Variables
/// of a single layer are called `tower/kernel`, of several `tower/dense/kernel`.
template <literal Name, class... Layers>
constexpr auto shared(Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a chain has layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return shared<Name>(as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    return shared_layers<Name, Layers...>{{{layers...}}};
  } else {
    detail::explain_layers<Layers...>();
    return shared_layers<Name, no_layer>{};
  }
}

namespace detail {

template <class L>
inline constexpr bool is_shared = false;
template <literal Name, class... Layers>
inline constexpr bool is_shared<shared_layers<Name, Layers...>> = true;

template <class L>
inline constexpr bool is_slice = false;
template <bool Ids>
inline constexpr bool is_slice<input_slice<Ids>> = true;

}  // namespace detail

/// A result within the function of a graph. `x | layer` applies the layer to it. Copies are free. A named
/// result may be used any number of times.
template <class Scope, layer... Pending>
struct graph_result {
  static constexpr bool is_result_of_graph = true;
  static constexpr bool is_input = sizeof...(Pending) == 1 && (detail::is_slice<Pending> && ...);

  using scope = Scope;

  typename Scope::pointer within = nullptr;
  int source = -1;  ///< the node before the layers; -1: the input
  int number = -1;  ///< of the result; -1: an input
  std::tuple<Pending...> pending{};

  constexpr graph_result& operator=(graph_result const&) = default;
  template <detail::is_result Other>
  constexpr graph_result& operator=(Other const&) {
    static_assert(detail::is_said<graph_result>,
                  "edl: each result of `nn::graph` has a type and a name of its own: `auto const b = a | "
                  "nn::relu{};`");
    return *this;
  }

  /// Its extents. They are known if the graph begins with an input.
  constexpr edl::shape shape() const {
    static_assert(
        Scope::sized || Scope::records,
        "edl: the shape of a result is known in the function of a network, which begins with an input");
    edl::shape all = within->shape_of(source);
    auto const one = [&](auto const& l) {
      if (l.check(all) != fit::fits) return false;
      all = l.output(all);
      return true;
    };
    edl::unpack([&](auto const&... l) { (void)(one(l) && ...); }, pending);
    return all;
  }
};

namespace detail {

/// Turns a result into a node.
template <class Scope, class... Pending>
constexpr int commit(graph_result<Scope, Pending...> const& x) {
  if constexpr (sizeof...(Pending) > 0)
    return x.within->commit(x.number, x.source, layers_of_node<"", 0, Pending...>{{x.pending}});
  else
    return x.within->use(x.number), x.source;
}

/// A layer that follows a result. In the function of a network its mask is one of the network's input.
template <class Scope, class... Pending, class L>
constexpr L masked_by_input([[maybe_unused]] graph_result<Scope, Pending...> const& x, L l) {
  if constexpr (Scope::sized && masks_places<L>) {
    l.of_network = true;
    if (l.mask.row == 0) l.mask.row = x.within->shape_of(-1).channels;
  }
  return l;
}

/// `Named`: the operand has a name, and may be used again.
template <bool Named, class Scope, class... Pending, class L>
constexpr auto follow(graph_result<Scope, Pending...> const& x, L const& l) {
  if constexpr (Named || sizeof...(Pending) == 0) {
    int const node = commit(x);
    return graph_result<typename Scope::template after<Pending...>, L>{x.within, node, x.within->open(), {l}};
  } else {
    x.within->extend(x.number);
    return graph_result<Scope, Pending..., L>{x.within, x.source, x.within->open(),
                                              std::tuple_cat(x.pending, std::tuple<L>(l))};
  }
}

template <class Scope, class... Pending, literal Name, class... Layers>
constexpr auto follow_shared(graph_result<Scope, Pending...> const& x,
                             shared_layers<Name, Layers...> const& l, void const* object) {
  auto const with = [&]<class Kind, class Before>(Kind const& kind, std::type_identity<Before>, int source) {
    int const node = x.within->put_shared(kind, source, object);
    return graph_result<typename Before::template with<Kind>>{x.within, node, x.within->open(), {}};
  };
  if constexpr (graph_result<Scope, Pending...>::is_input) {
    using kind = layers_of_node<Name, 1, Pending..., Layers...>;
    return with(kind{{std::tuple_cat(x.pending, l.body.layers)}}, std::type_identity<Scope>{}, -1);
  } else {
    using kind = layers_of_node<Name, 0, Layers...>;
    return with(kind{l.body}, std::type_identity<typename Scope::template after<Pending...>>{}, commit(x));
  }
}

/// Instantiated for a layer that is a named object. The compiler's message shows `L`.
template <class L, bool InPlace>
struct follows_a_result {
  static constexpr bool in_place = InPlace;
  static_assert(
      in_place,
      "edl: this layer is an object that may be used again, and would have variables of its own each "
      "time: write it where it is used, or share it by `nn::shared<\"name\">(…)`");
};

/// The nodes that a result depends on once it is a node.
template <class Result>
struct scope_of;
template <class Scope, class... Pending>
struct scope_of<graph_result<Scope, Pending...>> {
  using type = typename Scope::template after<Pending...>;
};

template <class First, class... Others>
struct merged_scope {
  using type = First;
};
template <class First, class Second, class... Others>
struct merged_scope<First, Second, Others...>
    : merged_scope<typename Second::template merged<First>, Others...> {};

template <class Result>
inline constexpr bool is_ids = false;
template <class Scope>
inline constexpr bool is_ids<graph_result<Scope, input_slice<true>>> = true;

/// The result that a joint makes of others, in this line of the author's file; 0: it is not known.
template <class Kind, class First, class... Others>
constexpr auto join_by(int line, Kind const& kind, First const& first, Others const&... others) {
  using own = typename scope_of<First>::type;
  constexpr bool whole = own::records || !(is_ids<First> || ... || is_ids<Others>);
  static_assert(whole, "edl: ids are for an `nn::embedding` or an `nn::embedding_bag`, which stands between");
  using scope = typename merged_scope<own, typename scope_of<Others>::type...>::type::template with<Kind>;
  constexpr std::size_t n = 1 + sizeof...(Others);
  constexpr bool few = n <= std::tuple_size_v<node_operands>;
  static_assert(few, "edl: at most 16 results become one at a time");
  node_operands from{};
  if constexpr (few) {
    (first.within->check_same(others.within), ...);
    from = {std::int16_t(commit(first)), std::int16_t(commit(others))...};
  }
  int const node = first.within->put(kind, from, int(n), line);
  return graph_result<scope>{first.within, node, first.within->open(), {}};
}
/// Whether both are results.
template <class Left, class Right>
consteval bool are_results() {
  constexpr bool both = is_result<Left> && is_result<Right>;
  static_assert(both || is_said<Left, Right>,
                "edl: `nn::matmul` and `nn::cross_attention` are of two results of one `nn::graph`");
  return both;
}
template <merge How, class... Results>
constexpr auto join_results(Results const&... results) {
  return join_by(0, joint<How>{}, results...);
}

}  // namespace detail

/// Within the function of a graph: the product of two results for each sample. Each is a matrix with a row
/// for each place and a column for each channel. So `matmul(a, b | transpose{})` is how each place of a goes
/// with each of b. It runs on the processor. (h, w, k) · (k places, c) → (h, w, c)
template <class Left, class Right>
constexpr auto matmul(Left const& a, Right const& b, expression::source_line line = {}) {
  if constexpr (detail::are_results<Left, Right>())
    return detail::join_by(line.number, matrix_product{}, a, b);
  else
    return a;
}

/// Applies a layer to a result. Write the layer where it is used, or make it with `shared`.
template <class Result, class L>
  requires detail::is_result<std::remove_cvref_t<Result>>
constexpr auto operator|(Result&& x, L&& l) {
  using from = std::remove_cvref_t<Result>;
  using to = std::remove_cvref_t<L>;
  using scope = typename from::scope;
  constexpr bool named = std::is_lvalue_reference_v<Result> && !from::is_input;
  if constexpr (detail::is_shared<to>) {
    return detail::follow_shared(x, l, std::is_lvalue_reference_v<L> ? &l : nullptr);
  } else if constexpr (layer<to> || is_expression<to>) {
    static_assert(sizeof(detail::follows_a_result < to, !std::is_lvalue_reference_v<L> || scope::records >) >
                  0);
    return detail::follow<named>(x, detail::masked_by_input(x, as_layer(l)));
  } else {
    if constexpr (!scope::records) detail::explain_layers<to>();
    return detail::follow<named>(x, no_layer{});
  }
}

template <class Left, class Right>
  requires(!detail::is_result<Left> && detail::is_result<Right>)
constexpr auto operator|(Left const&, Right const& x) {
  static_assert(detail::is_said<Right>, "edl: a layer follows a result: `x | nn::dense{.units = 10}`");
  return x;
}

/// The sum of two results of one shape.
template <detail::is_result A, detail::is_result B>
constexpr auto operator+(A const& a, B const& b) {
  return detail::join_results<merge::sum>(a, b);
}

/// Their product, element by element. It runs on the processor.
template <detail::is_result A, detail::is_result B>
constexpr auto operator*(A const& a, B const& b) {
  return detail::join_results<merge::product>(a, b);
}

namespace detail {

template <class... Things>
consteval void refuse_operator() {
  static_assert(
      is_said<Things...>,
      "edl: `+` and `*` join two results; `nn::apply` computes any other expression of results, and "
      "`nn::scale{.factor = 0.5f}` a multiple of one");
}
template <class A, class B>
concept result_beside = is_result<A> != is_result<B>;

}  // namespace detail

template <class A, class B>
  requires detail::result_beside<A, B>
constexpr auto operator+(A const& a, B const& b) {
  detail::refuse_operator<A, B>();
  return detail::result_of(a, b);
}
template <class A, class B>
  requires detail::result_beside<A, B>
constexpr auto operator*(A const& a, B const& b) {
  detail::refuse_operator<A, B>();
  return detail::result_of(a, b);
}
template <class A, class B>
  requires(detail::is_result<A> || detail::is_result<B>)
constexpr auto operator-(A const& a, B const& b) {
  detail::refuse_operator<A, B>();
  return detail::result_of(a, b);
}
template <class A, class B>
  requires(detail::is_result<A> || detail::is_result<B>)
constexpr auto operator/(A const& a, B const& b) {
  detail::refuse_operator<A, B>();
  return detail::result_of(a, b);
}

namespace detail {

/// The argument for an input in a call of a function.
template <class Scope, class... Pending>
constexpr graph_result<Scope, Pending...> argument(typename Scope::pointer within,
                                                   std::tuple<Pending...> const& begin) {
  return {within, -1, -1, begin};
}

template <literal... Names, class... Kinds, literal... Tables>
constexpr auto slices_of(input_list<named_input<Names, Kinds, Tables>...> const& all) {
  return std::make_tuple(std::make_tuple(input_slice<holds_ids<Kinds>>{
      all.template first_of<Names>(), all.input(), all.template kind_of<Names>().input()})...);
}
template <class Start>
constexpr auto slices_of(Start const&) {
  return std::tuple<std::tuple<>>{};
}

/// Instantiated for the function of a graph.
template <bool Called, bool Returns>
struct is_a_function {
  static constexpr bool called = Called, returns = Returns || !Called;
  static_assert(called,
                "edl: the function of an `nn::graph` takes one argument for each input: `[](auto x) { … }`");
  static_assert(returns,
                "edl: the function of an `nn::graph` returns a result: `return x | nn::dense{.units = 10};`");
  static constexpr bool value = called && returns;
};

template <bool Whole, class Result>
struct graph_made_of;
template <bool Whole, bool Sized, class... Kinds>
struct graph_made_of<Whole, kinds<Sized, Kinds...>> {
  using type = recorder<Sized, Kinds...>;
};

template <bool Whole, class F, class... Begin>
constexpr auto read(F const& f, shape in, std::tuple<Begin...> const& begin) {
  using first = kinds<Whole>;
  constexpr bool called = requires { f(argument<first>(nullptr, std::declval<Begin>())...); };
  constexpr auto returned = [] {
    if constexpr (called)
      return std::type_identity<std::remove_cvref_t<decltype(std::declval<F const&>()(
          argument<first>(nullptr, std::declval<Begin>())...))>>{};
    else
      return std::type_identity<void>{};
  };
  using result = typename decltype(returned())::type;
  if constexpr (!is_a_function<called, is_result<result>>::value) {
    return no_layer{};
  } else {
    using second = typename graph_made_of<Whole, typename scope_of<result>::type>::type;
    second notes(in);
    return notes.finish(
        edl::unpack([&](auto const&... b) { return commit(f(argument<second>(&notes, b)...)); }, begin));
  }
}

}  // namespace detail

/// A network as a function of its inputs, each of which is an argument. A named result may be used again:
///
///     nn::graph(nn::image{.height = 28, .width = 28}, [](auto x) {
///       auto const a = x | nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same} | nn::relu{};
///       auto const b = a | nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same};
///       return nn::concat(a, a + b) | nn::dense{.units = 10};
///     })
///
/// The function must be a constant expression, and may call others. Layers without a name between them are
/// computed like those of `sequential`. `concat`, `sum`, `product`, `+` and `*` join results. Variables are
/// named as in one `sequential` of all layers, in the order in which the result needs them.
template <class First, class F>
  requires requires(First from) {
    { from.input() } -> std::same_as<shape>;
  }
constexpr auto graph(First from, F const& function) {
  auto const all = detail::read<true>(function, from.input(), detail::slices_of(from));
  return network<First, std::remove_const_t<decltype(all)>>{from.input(), {{all}}, holds_ids<First>, from};
}

/// The same as a layer within another container or function; the argument is the layer's input.
template <class F>
constexpr auto graph(F const& function) {
  return detail::read<false>(function, {}, std::tuple<std::tuple<>>{});
}

}  // namespace edl::nn
