// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include "edl/compute/nn/expression/cuda_source.hpp"
#include "edl/compute/nn/expression/operations.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// A layer given by its forward pass: `constexpr auto forward(auto x, auto& layer) const` takes a `tensor`
/// and a scope, and returns a tensor.
template <class L>
concept is_expression =
    std::copyable<L> && !layer<L> && requires(L const& l, tensor x, expression::scope& s) {
      { l.forward(x, s) } -> std::convertible_to<tensor>;
    };

namespace expression {

/// The axes of the `N` inputs of an expression, without samples.
template <class L, std::size_t N>
constexpr std::array<axes, N> axes_of_inputs() {
  std::array<axes, N> all;
  all.fill(channels | places);
  if constexpr (N > 1 && requires { L::inputs[0]; })
    for (std::size_t i = 0; i < N && i < std::size(L::inputs); ++i) all[i] = L::inputs[i];
  return all;
}

/// `N`: the number of its inputs.
template <std::size_t N = 1, class L>
constexpr form form_of(L const& l, shape in, bool sizes = true) {
  constexpr auto over = axes_of_inputs<L, N>();
  scope s(in, over, sizes);
  if constexpr (N == 1)
    return s.finish(l.forward(s.input(), s));
  else
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return s.finish(l.forward(s.input(I)..., s));
    }(std::make_index_sequence<N>{});
}

/// The compiled operations of a layer, for all options and inputs.
template <class L, std::size_t N = 1>
struct compiled {
  static constexpr form operations = [] {
    if constexpr (requires { typename std::bool_constant<(form_of<N>(L{}, {4, 4, 4}, false), true)>; })
      return form_of<N>(L{}, {4, 4, 4}, false);
    else
      return form{.wrong = {mistake_kind::not_constexpr, 0, {}, {}}};
  }();
  static constexpr bool right = operations.wrong.none();
  static constexpr program backward =
      right ? scheduler::backward(operations, deriver(operations).result()) : program{};
  static constexpr program forward = right ? scheduler::forward(operations, backward) : program{};
};

/// Whether the operations are right for all options; the compiler reports a mistake.
template <class L>
constexpr bool is_right() {
  constexpr mistake wrong = compiled<L>::operations.wrong;
  if constexpr (!wrong.none()) return sizeof(forward_pass_of<L, wrong>) == 0;
  return wrong.none();
}

/// The name of a type without its namespaces and arguments.
template <class T>
constexpr std::string_view name_of_type() {
  std::string_view all = __PRETTY_FUNCTION__;
  all.remove_prefix(all.find("T = ") + 4);
  all = all.substr(0, all.find_first_of(";]<"));
  if (auto const last = all.rfind(':'); last != all.npos) all.remove_prefix(last + 1);
  return all;
}

/// The name of a layer: its `name`, or that of its type.
template <class L>
constexpr std::string_view name_of() {
  if constexpr (requires { std::string_view(L::name); })
    return std::string_view(L::name);
  else
    return name_of_type<L>();
}

template <class Visit>
constexpr void each_variable(form const& f, Visit& visit) {
  for (int v = 0; v < f.variable_count; ++v) {
    auto const& one = f.variables[std::size_t(v)];
    visit(variable_spec{one.name, one.dims, one.initial});
  }
  for (int s = 0; s < f.statistic_count; ++s) {
    auto const& one = f.statistics[std::size_t(s)];
    visit(variable_spec{one.name, one.dims, one.initial, false});
  }
}

/// The form with the constants of these options.
template <std::size_t N = 1, class L>
constexpr form form_now(L const& l, shape in) {
  if (compiled<L, N>::operations.wrong.what == mistake_kind::not_constexpr) return compiled<L, N>::operations;
  form f = form_of<N>(l, in);
  if (N > 1 && f.wrong.none() && f.statistic_count > 0) f.wrong.what = mistake_kind::statistic_of_several;
  if (f.wrong.none() && !f.same_operations(compiled<L, N>::operations))
    f.wrong = {mistake_kind::depends_on_options, 0, in, {}};
  return f;
}

/// make(options, in), which each thread keeps until it asks for another: over a few samples a pass takes no
/// longer than making a form.
template <class L, class Make>
form const& kept_form(L const& options, shape in, Make const& make) {
  struct memory {
    std::array<std::byte, sizeof(L)> options{};
    shape in{};
    form made{};
    bool known = false;
  };
  thread_local memory last;
  constexpr bool comparable = std::is_trivially_copyable_v<L>;
  bool const same = std::is_empty_v<L> || std::memcmp(last.options.data(), &options, sizeof(L)) == 0;
  if (comparable && last.known && same && last.in == in) return last.made;
  last.known = false;
  last.made = make(options, in);
  last.in = in;
  if constexpr (comparable) std::memcpy(last.options.data(), &options, sizeof(L));
  last.known = true;
  return last.made;
}

}  // namespace expression

/// Makes a layer from a forward pass: the compiler derives its gradient. On a GPU it is computed by kernels
/// that are compiled when they are first used.
template <is_expression L>
struct derived {
  L source;

  static constexpr bool right = expression::is_right<L>();
  static constexpr std::string_view name = expression::name_of<L>();
  static constexpr bool portable = true;
  static constexpr bool each_place = expression::compiled<L>::forward.each_place;
  static constexpr bool recomputes = nn::recomputes<L>;
  static constexpr bool reads_y = expression::compiled<L>::backward.reads_result;
  static constexpr int statistics = expression::compiled<L>::forward.statistic_count;

  constexpr fit check(shape in) const {
    if constexpr (requires { source.check(in); })
      if (fit const why = source.check(in); why != fit::fits) return why;
    return wrong(in).none() ? fit::fits : fit::tensors_do_not_fit;
  }
  /// The first mistake for this input.
  constexpr expression::mistake wrong(shape in) const { return now(in).wrong; }
  /// Options and inputs do not change which axes the result has.
  constexpr shape output(shape in) const {
    constexpr auto const& of = expression::compiled<L>::operations;
    return expression::extents_of(of.nodes[of.result].over, in);
  }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    expression::each_variable(now(in), visit);
  }
  constexpr std::size_t saved(shape in, pass_size batch) const {
    return expression::kept_by(expression::compiled<L>::forward, in, std::size_t(batch));
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    expression::form const& f = kept(a.in);
    random_stream random;
    if constexpr (expression::draws(expression::compiled<L>::forward)) random = p.random;
    // The statistics of before the step are kept, because the backward pass reads them, too.
    if constexpr (statistics > 0) expression::move<T>(p.device, a.state, a.saved.first(a.state.size()));
    expression::run<expression::compiled<L>::forward, T>(p.device, {.now = f,
                                                                    .in = a.in,
                                                                    .batch = std::size_t(a.batch),
                                                                    .x = std::span(&a.x, 1),
                                                                    .variables = a.parameters,
                                                                    .y = a.y,
                                                                    .kept = a.saved,
                                                                    .training = p.mode == mode::training,
                                                                    .random = random,
                                                                    .draws = true,
                                                                    .name = name});
    if constexpr (statistics > 0)
      if (p.mode == mode::training) {
        std::size_t const at = expression::size_of_statistics(expression::compiled<L>::forward, a.in) / 2;
        expression::move<T>(p.device, a.saved.subspan(at, a.state.size()), a.state);
      }
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    expression::form const& f = kept(a.in);
    std::span<T> const y{const_cast<T*>(a.y.data()), a.y.size()};
    expression::run<expression::compiled<L>::backward, T>(p.device, {.now = f,
                                                                     .in = a.in,
                                                                     .batch = std::size_t(a.batch),
                                                                     .x = std::span(&a.x, 1),
                                                                     .dy = a.dy,
                                                                     .variables = a.parameters,
                                                                     .y = y,
                                                                     .dx = std::span(&a.dx, 1),
                                                                     .gradients = a.gradients,
                                                                     .kept = a.saved,
                                                                     .training = p.mode == mode::training,
                                                                     .name = name});
  }

  /// The form with the constants of these options.
  constexpr expression::form now(shape in) const { return expression::form_now(source, in); }
  expression::form const& kept(shape in) const {
    return expression::kept_form(source, in,
                                 [](L const& l, shape of) { return expression::form_now(l, of); });
  }
};

/// A layer in the form that containers store.
template <class L>
constexpr auto as_layer(L const& l) {
  if constexpr (is_expression<L>)
    return derived<L>{l};
  else
    return l;
}

}  // namespace edl::nn
