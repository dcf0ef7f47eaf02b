// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/apply.hpp"
#include "edl/compute/nn/layer/cross_attention.hpp"
#include "edl/compute/nn/layer/graph.hpp"
#include "edl/compute/nn/layer/masked.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/layer/residual.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/naming.hpp"
#include "edl/compute/onnx/elements.hpp"
#include "edl/compute/onnx/expression.hpp"
#include "edl/compute/onnx/graph.hpp"
#include "edl/compute/onnx/ids.hpp"
#include "edl/compute/onnx/join.hpp"
#include "edl/compute/onnx/pictures.hpp"
#include "edl/compute/onnx/sequences.hpp"
#include "edl/core/unpack.hpp"

namespace edl::onnx {

/// A layer with a function `value to_onnx(graph&, layer const&, value const& x)`, which adds nodes that
/// compute what the layer computes of x in an evaluation.
template <class L>
concept exportable = requires(graph& g, L const& l, value const& x) {
  { to_onnx(g, l, x) } -> std::same_as<value>;
};

namespace detail {

/// Converts to an argument of any type.
struct any_argument {
  template <class T>
  operator T&() const;  // NOLINT(google-explicit-constructor)
};

/// Whether a layer has a `to_onnx` that is never called.
template <class L>
concept onnx_of_another_signature = !exportable<L> && (
    requires(L const& l, any_argument any) { to_onnx(any, l, any); } ||
    requires(L const& l, any_argument any) { to_onnx(any, l); } ||
    requires(L const& l, any_argument any) { to_onnx(l, any); } ||
    requires(L const& l, any_argument any) { to_onnx(l, any, any); } ||
    requires(L const& l, any_argument any) { l.to_onnx(any, any); } ||
    requires(L const& l, any_argument any) { l.to_onnx(any); });

}  // namespace detail

/// Adds a layer's nodes. Throws error for a layer that is not `exportable`.
template <nn::layer L>
value apply(graph& g, L const& l, value const& x) {
  constexpr bool wrong = detail::onnx_of_another_signature<L>;
  static_assert(!wrong,
                "edl: the `to_onnx` of this layer should be a function beside it, `edl::onnx::value "
                "to_onnx(edl::onnx::graph& g, LAYER const& l, edl::onnx::value const& x)`");
  if constexpr (exportable<L>) {
    if constexpr (!nn::container<L> && !requires { l.part; })
      if (x.name.empty()) return to_onnx(g, l, g.whole_row());  // the layer reads all inputs, not one of them
    return to_onnx(g, l, x);
  } else {
    g.refuse(nn::name_of<L>());
  }
}

/// Adds the nodes of a container's child number `index`.
template <nn::container C, nn::layer L>
value apply_child(graph& g, C const& of, std::size_t index, L const& l, value const& row, value const& x) {
  if constexpr (nn::is_spliced<L>) return apply(g, l, x);
  inside const named(g, nn::child_name(of, row.extents, index));
  return apply(g, l, x);
}

template <class... Layers>
value to_onnx(graph& g, nn::chain<Layers...> const& l, value const& x) {
  value y = x;
  std::size_t index = 0;
  edl::unpack([&](auto const&... one) { ((y = apply_child(g, l, index++, one, x, y)), ...); }, l.layers);
  return y;
}

template <class... Layers>
value to_onnx(graph& g, nn::masked_chain<Layers...> const& l, value const& x) {
  auto around = g.exchange(mask_of(g, l.mask, x));
  nn::chain<Layers...> const& within = l;
  value y = to_onnx(g, within, x);
  g.exchange(std::move(around));
  return y;
}

template <class... Layers>
value to_onnx(graph& g, nn::tied_chain<Layers...> const& l, value const& x) {
  nn::chain<Layers...> const& within = l;
  value const y = to_onnx(g, within, x);
  inside const named(g, nn::child_name(within, x.extents, 0));
  std::string const across = g.add("Transpose", {g.variable("embeddings")});
  return {g.add("MatMul", {g.as(y, form::places).name, across}), l.output(x.extents), form::places};
}

template <nn::merge How, class... Branches>
value to_onnx(graph& g, nn::parallel<How, Branches...> const& l, value const& x) {
  std::vector<value> all;
  std::size_t index = 0;
  edl::unpack([&](auto const&... b) { (all.push_back(apply_child(g, l, index++, b, x, x)), ...); },
              l.branches);
  return join(g, How, std::move(all), l.output(x.extents));
}

template <class Body, class Projection>
value to_onnx(graph& g, nn::shortcut<Body, Projection> const& l, value const& x) {
  value const body = apply_child(g, l, 0, l.body, x, x);
  if constexpr (nn::shortcut<Body, Projection>::projects)
    return join(g, nn::merge::sum, {body, apply_child(g, l, 1, l.projection, x, x)}, body.extents);
  else
    return join(g, nn::merge::sum, {body, x.name.empty() ? g.whole_row() : x}, body.extents);
}

template <nn::merge How>
value join(graph& g, nn::joint<How> const&, std::vector<value> results, shape out) {
  return join(g, How, std::move(results), out);
}
template <nn::literal Name, int Times>
value to_onnx(graph& g, nn::projection<Name, Times> const& l, value const& x) {
  return to_onnx(g, l.of(x.extents), x);
}

/// Adds the nodes of a graph's layers, named like those of one chain.
template <bool Whole, class... Kinds>
value to_onnx(graph& g, nn::graph_layer<Whole, Kinds...> const& l, value const& x) {
  std::vector<value> results;
  std::vector<std::string> shared(std::size_t(l.size));  // names of nodes that have one
  std::vector<std::string_view> taken;
  auto const follow = [&](auto const& layers, value y, std::vector<std::string_view>& names) {
    auto const one = [&](auto const& layer) {
      names.push_back(nn::child_name(layer, {}));
      inside const named(g, nn::numbered(names));
      y = apply(g, layer, y);
    };
    edl::unpack([&](auto const&... layer) { (one(layer), ...); }, layers);
    return y;
  };
  auto const sizes = l.measure(x.extents);
  for (int k = 0; k < l.size; ++k)
    l.node(k).what.visit([&]<class Kind>(Kind const& what) {
      auto const operand = [&](int i) {
        int const from = l.operand(k, i);
        return from < 0 ? x : results[std::size_t(from)];
      };
      if constexpr (nn::is_joint<Kind>) {
        std::vector<value> all;
        for (int i = 0; i < l.node(k).operands; ++i)
          all.push_back(operand(i).name.empty() ? g.whole_row() : operand(i));
        if constexpr (nn::is_joint_with_variables<Kind>) {
          taken.push_back(Kind::name);
          inside const named(g, nn::numbered(taken));
          results.push_back(add_expression(g, what.now(sizes[k].in), all, sizes[k].in));
        } else {
          results.push_back(join(g, what, std::move(all), sizes[k].out));
        }
      } else if constexpr (!nn::is_spliced<Kind>) {
        if (l.node(k).owner == k) {
          taken.push_back(Kind::role);
          shared[std::size_t(k)] = nn::numbered(taken);
        }
        inside const named(g, shared[std::size_t(l.node(k).owner)]);
        value y = operand(0);
        if constexpr (Kind::names_layer) {
          if constexpr (Kind::slices > 0) y = apply(g, std::get<0>(what.layers), y);
          results.push_back(apply(g, std::get<Kind::slices>(what.layers), y));
        } else {
          std::vector<std::string_view> own;
          results.push_back(follow(what.layers, y, own));
        }
      } else {
        results.push_back(follow(what.layers, operand(0), taken));
      }
    });
  return results.back();
}

template <bool Ids>
value to_onnx(graph& g, nn::input_slice<Ids> const& l, value const&) {
  return *g.placed(l.first);
}

/// Adds an input of the model for an input of the network. `name` also applies to an only input.
template <class Kind>
value add_input(graph& g, std::string const& name, std::string_view table, Kind const& kind) {
  shape const s = kind.input();
  if constexpr (std::is_same_v<Kind, nn::weighted_ids>) {
    value ids = g.input(name, {1, 1, kind.most}, form::rows, true);
    ids.extents = s;
    ids.weights = g.input(name + "_weights", {1, 1, kind.most}, form::rows).name;
    return ids;
  } else if constexpr (std::is_same_v<Kind, nn::served_embedding_bag>) {
    std::string const rows = g.rows_for(name, table, kind.most, kind.width);
    std::string const weights = g.input(name + "_weights", {1, 1, kind.most}, form::rows).name;
    return {combine(g, rows, weights, kind.combiner), s};
  } else if constexpr (nn::holds_rows<Kind>) {
    return {g.rows_for(name, table, kind.count, kind.width), s, form::places};
  } else {
    return g.input(name, s, std::is_same_v<Kind, nn::image> ? form::pictures : form::rows,
                   nn::holds_ids<Kind>);
  }
}

template <class Start>
value add_inputs(graph& g, Start const& start) {
  value const only = add_input(g, "input", {}, start);
  g.place(0, only);  // for masks
  return only;
}
template <class... Named>
value add_inputs(graph& g, nn::input_list<Named...> const& all) {
  int first = 0;
  auto const one = [&](auto const& n) {
    inside const named(g, n.name);
    g.place(first, add_input(g, std::string(n.name), n.table, n.spec));
    first += int(n.spec.input().size());
  };
  edl::unpack([&](auto const&... n) { (one(n), ...); }, all.all);
  return {.name = {}, .extents = all.input()};  // branches select inputs by name
}

/// Adds a whole network to a graph.
template <class Net>
void add_network(graph& g, Net const& net, output_names const& names) {
  value const x = add_inputs(g, net.start);
  add_outputs(g, apply(g, net.body, x), names);
}

}  // namespace edl::onnx
