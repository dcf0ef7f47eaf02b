// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/graph_joint.hpp"
#include "edl/compute/nn/layer/graph_of.hpp"

namespace edl::nn {

/// A joint of `N` results that is an expression. It is computed for the extents that they have together: each
/// has those of its axes.
template <class L, std::size_t N>
struct applied {
  L source{};

  using passes = expression::compiled<L, N>;
  static constexpr std::string_view name = expression::name_of<L>();
  static constexpr bool joins = true, portable = true, overwrites_dy = false;
  static constexpr bool reads_operands = passes::backward.reads_input,
                        reads_y = passes::backward.reads_result;
  static constexpr bool mixes_places = !passes::forward.each_place;
  static constexpr auto over = expression::axes_of_inputs<L, N>();

  constexpr shape whole(std::span<shape const> in) const {
    shape all{1, 1, 1};
    for (std::size_t i = N; i-- > 0;) {
      if (has(over[i], places)) all.height = in[i].height, all.width = in[i].width;
      if (has(over[i], channels)) all.channels = in[i].channels;
    }
    return all;
  }
  constexpr shape output(std::span<shape const> in, expression::mistake& wrong) const {
    shape const all = whole(in);
    for (std::size_t i = 0; i < N; ++i)
      if (shape const wanted = expression::extents_of(over[i], all); wrong.none() && in[i] != wanted)
        wrong = {expression::mistake_kind::shapes_of_inputs, 0, wanted, in[i]};
    if (wrong.none()) wrong = now(all).wrong;
    return output(all);
  }

  // As a layer: `in` is `whole`.
  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const {
    auto const& form = passes::operations;
    return expression::extents_of(form.nodes[form.result].over, in);
  }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    expression::each_variable(now(in), visit);
  }

  constexpr std::size_t saved(std::span<shape const> in, std::size_t batch) const {
    return expression::kept_by(passes::forward, whole(in), batch);
  }
  constexpr std::size_t scratch(std::span<shape const>, std::size_t) const { return 0; }

  template <class D, class T>
  void forward(pass<D>& p, joint_args<T> const& a, std::span<T> y) const {
    shape const all = whole(a.in);
    expression::form const& f = kept(all);
    random_stream random;
    if constexpr (expression::draws(passes::forward)) random = p.random;
    expression::run<passes::forward, T>(p.device, {.now = f,
                                                   .in = all,
                                                   .batch = a.batch,
                                                   .x = a.x,
                                                   .variables = a.parameters,
                                                   .y = y,
                                                   .kept = a.saved,
                                                   .training = p.mode == mode::training,
                                                   .random = random,
                                                   .draws = true,
                                                   .name = name});
  }
  /// Writes the gradient of each operand, unless its `dx` is empty, and those of the variables.
  template <class D, class T>
  void backward(pass<D>& p, joint_args<T> const& a, view<T> y, view<T> dy,
                std::type_identity_t<std::span<std::span<T> const>> dx, std::span<T> gradients) const {
    shape const all = whole(a.in);
    expression::form const& f = kept(all);
    std::span<T> const result{const_cast<T*>(y.data()), y.size()};
    expression::run<passes::backward, T>(p.device, {.now = f,
                                                    .in = all,
                                                    .batch = a.batch,
                                                    .x = a.x,
                                                    .dy = dy,
                                                    .variables = a.parameters,
                                                    .y = result,
                                                    .dx = dx,
                                                    .gradients = gradients,
                                                    .kept = a.saved,
                                                    .training = p.mode == mode::training,
                                                    .name = name});
  }

  /// The form with the constants of these options.
  constexpr expression::form now(shape in) const { return expression::form_now<N>(source, in); }
  expression::form const& kept(shape in) const {
    return expression::kept_form(source, in,
                                 [](auto const& l, shape of) { return expression::form_now<N>(l, of); });
  }
};

namespace detail {

template <class L, class... Tensors>
concept expresses = std::copyable<L> && requires(L const& l, expression::scope& s, Tensors const&... x) {
  { l.forward(x..., s) } -> std::convertible_to<tensor>;
};

template <class>
using tensor_for = tensor;

/// Whether `nn::apply` can apply this to these; the compiler says why not.
template <class L, class... Results>
consteval bool is_applied() {
  constexpr bool results = (is_result<Results> && ...), said = is_said<Results...>;
  static_assert(results || said, "edl: `nn::apply` applies a layer to results of one `nn::graph`");
  if constexpr (results) {
    constexpr bool few = sizeof...(Results) <= expression::form::most_inputs;
    static_assert(few || said, "edl: `nn::apply` is of at most 8 results");
    constexpr bool fits = expresses<L, tensor_for<Results>...>;
    static_assert(
        fits || !few || said,
        "edl: the first argument of `nn::apply` is a layer with `constexpr auto forward(auto a, auto "
        "b, auto& layer) const`, which returns a tensor, and has one argument for each result");
    constexpr bool axes = [] {
      if constexpr (requires { L::inputs[0]; })
        return std::size(L::inputs) == sizeof...(Results);
      else
        return true;
    }();
    static_assert(axes || said, "edl: `inputs` of a layer of several results has the axes of each of them");
    return few && fits && axes;
  }
  return false;
}

}  // namespace detail

/// Within the function of a graph: applies a layer of several results to them. Its forward pass is an
/// expression of as many tensors, and the compiler derives the gradient of each:
///
///     struct gate {
///       constexpr auto forward(auto z, auto a, auto b, auto&) const { return z * a + (1 - z) * b; }
///     };
///     …
///     nn::apply(gate{}, z, a, b)
///
/// The layer may have options and variables, as one of a single input. Results have one shape, unless the
/// layer says which axes each has: `static constexpr nn::axes inputs[] = {nn::channels | nn::places,
/// nn::channels}` are a result and another with one place.
template <class L, class First, class... Others>
constexpr auto apply(L const& layer, First const& first, Others const&... others) {
  if constexpr (detail::is_applied<L, First, Others...>())
    return detail::join_by(0, applied<L, 1 + sizeof...(Others)>{layer}, first, others...);
  else
    return first;
}

}  // namespace edl::nn
