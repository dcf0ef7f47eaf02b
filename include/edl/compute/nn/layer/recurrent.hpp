// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/parallel.hpp"

namespace edl::nn {

namespace detail {

/// The common part of recurrent layers: places are steps. The inputs' contribution to the gates is one
/// product over all steps of all samples, and so are the gradients of both kernels. One product per step
/// remains, with the result of the previous step.
struct recurrent_core {
  recurrent_geometry g;
  std::size_t inputs;
  bool recurrent_bias;

  constexpr shape output() const { return {1, g.last ? 1 : g.steps, g.units}; }
  template <class Visit>
  constexpr void variables(Visit&& visit, initializer kernel, initializer recurrent) const {
    int const columns = int(g.gate_columns());
    visit(variable_spec{"kernel", {int(inputs), columns}, kernel});
    visit(variable_spec{"recurrent_kernel", {g.units, columns}, recurrent});
    if (recurrent_bias)
      visit(variable_spec{"bias", {2, columns}, constant{0}});
    else
      visit(variable_spec{"bias", {columns}, constant{0}});
  }

  constexpr std::size_t rows(pass_size batch) const { return std::size_t(batch) * std::size_t(g.steps); }
  constexpr std::size_t units() const { return std::size_t(g.units); }

  /// Gates, states, and all results if only the last is the output.
  constexpr std::size_t saved(pass_size batch) const {
    return rounded(rows(batch) * g.gate_columns()) + (g.last ? 2 : 1) * rounded(rows(batch) * units());
  }
  /// The initial value of each step, and the gradient of a gru's product.
  constexpr std::size_t scratch(pass_size batch) const {
    return rounded(rows(batch) * units()) + (recurrent_bias ? rounded(rows(batch) * g.gate_columns()) : 0);
  }

  /// The variables, or their gradients.
  template <class Span>
  struct parts {
    Span kernel, recurrent, bias, recurrent_bias;

    parts(recurrent_core const& of, Span all) {
      carver next(all);
      kernel = next.next(of.inputs * of.g.gate_columns());
      recurrent = next.next(of.units() * of.g.gate_columns());
      bias = next.next(of.g.gate_columns());
      recurrent_bias = next.rest();
    }
  };

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    std::size_t const n = rows(a.batch), steps = std::size_t(g.steps);
    parts w(*this, a.parameters);
    carver saved(a.saved);
    auto const gates = saved.aligned(n * g.gate_columns()), states = saved.aligned(n * units()),
               y = g.last ? saved.aligned(n * units()) : a.y;
    p.device.dense_forward(n, inputs, g.gate_columns(), activation::none, a.x, w.kernel, w.bias, gates);
    auto const places = p.places_of(a.in);
    if (places.all())
      p.device.recurrent_forward(g, a.batch, w.recurrent, w.recurrent_bias, gates, states, y);
    else
      p.device.masked_recurrent_forward(g, a.batch, places, w.recurrent, w.recurrent_bias, gates, states, y);
    if (g.last && !places.all())
      copy_last(places, view<typename D::scalar>(y), a.y);
    else if (g.last)
      p.device.copy_columns(std::size_t(a.batch), units(), y, g.reverse ? 0 : (steps - 1) * units(),
                            steps * units(), a.y, 0, units());
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    std::size_t const n = rows(a.batch), steps = std::size_t(g.steps), all = steps * units();
    parts w(*this, a.parameters);
    parts d(*this, a.gradients);
    carver saved(a.saved);
    auto const gates = saved.aligned(n * g.gate_columns()), states = saved.aligned(n * units());
    view<T> const y = g.last ? view<T>(saved.aligned(n * units())) : a.y;
    carver scratch(p.scratch);
    auto const before = scratch.aligned(n * units());
    auto const product = scratch.next(recurrent_bias ? n * g.gate_columns() : 0);
    auto const places = p.places_of(a.in);
    if (places.all())
      p.device.recurrent_backward(g, a.batch, w.recurrent, states, y, a.dy, gates, product);
    else
      p.device.masked_recurrent_backward(g, a.batch, places, w.recurrent, states, y, a.dy, gates, product);
    // The initial value of each step: the result of the one before, and zeros for the first.
    std::size_t const here = g.reverse ? 0 : units(), there = g.reverse ? units() : 0;
    p.device.copy_columns(std::size_t(a.batch), all - units(), y, there, all, before, here, all);
    for (std::size_t i = 0; i < std::size_t(a.batch); ++i)
      std::ranges::fill(before.subspan(i * all + (g.reverse ? all - units() : 0), units()), T(0));
    if (!places.all()) copy_before(places, y, before);
    p.device.dense_backward(n, units(), g.gate_columns(), before, w.recurrent,
                            recurrent_bias ? product : gates, {}, d.recurrent, d.recurrent_bias);
    p.device.dense_backward(n, inputs, g.gate_columns(), a.x, w.kernel, gates, a.dx, d.kernel, d.bias);
  }

  /// The result of each sample's last counted place; zeros if there is none.
  template <class T>
  void copy_last(kept_places const& places, view<T> y, std::span<T> to) const {
    for (std::size_t i = 0; i < places.counts.size(); ++i) {
      auto const kept = places.of(i);
      auto const own = to.subspan(i * units(), units());
      if (kept.empty())
        std::ranges::fill(own, T(0));
      else
        std::ranges::copy(row(y, i, g.reverse ? kept.front() : kept.back()), own.begin());
    }
  }

  /// The initial value of each counted place: the result of the counted place before it.
  template <class T>
  void copy_before(kept_places const& places, view<T> y, std::span<T> before) const {
    std::ranges::fill(before, T(0));
    for (std::size_t i = 0; i < places.counts.size(); ++i) {
      auto const kept = places.of(i);
      for (std::size_t k = 1; k < kept.size(); ++k) {
        std::int32_t const here = g.reverse ? kept[k - 1] : kept[k],
                           there = g.reverse ? kept[k] : kept[k - 1];
        std::ranges::copy(row(y, i, there), row(before, i, here).begin());
      }
    }
  }

  template <class T>
  std::span<T> row(std::span<T> of, std::size_t sample, std::int32_t step) const {
    return of.subspan((sample * std::size_t(g.steps) + std::size_t(step)) * units(), units());
  }
};

/// The common part of recurrent layers besides their options. The layer L has a `core` for its input's shape.
template <class L>
struct recurrent_layer {
  static constexpr bool knows_padding = true;

  constexpr fit check(shape) const { return layer().units > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr shape output(shape in) const { return core_of(in).output(); }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    core_of(in).variables(visit, layer().kernel_initializer, layer().recurrent_initializer);
  }
  constexpr std::size_t saved(shape in, pass_size batch) const { return core_of(in).saved(batch); }
  constexpr std::size_t scratch(shape in, pass_size batch) const { return core_of(in).scratch(batch); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    core_of(a.in).forward(p, a);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    core_of(a.in).backward(p, a);
  }

 private:
  constexpr L const& layer() const { return static_cast<L const&>(*this); }
  constexpr recurrent_core core_of(shape in) const { return layer().core(in); }
};

}  // namespace detail

/// Long short-term memory over the places of a sample (Hochreiter and Schmidhuber, 1997; with a forget gate,
/// Gers et al., 2000). It goes from the first place to the last or, with `reverse`, the other way. Each step
/// has the gates i, f, o = σ(·) and g = tanh(·) of x W + h R + b. Then c ← f ∘ c + i ∘ g and h ← o ∘ tanh(c);
/// both begin as zeros. The output has the result of each step at its place: (h, w, c) → (1, h · w, units).
/// With `last`, the output is only the result of the last step: (h, w, c) → (1, 1, units).
///
/// Columns are ordered i, f, g, o, as in Keras. Kernels are (c, 4 units) and (units, 4 units), and there is
/// one bias of 4 units. `forget_bias` is added within the forget gate; Keras adds it to the initial bias
/// instead. It runs on the processor.
struct lstm : detail::recurrent_layer<lstm> {
  int units = 0;
  bool reverse = false;
  bool last = false;
  float forget_bias = 1;
  initializer kernel_initializer = glorot_uniform{};
  initializer recurrent_initializer = glorot_uniform{};

  static constexpr std::string_view name = "lstm";

  constexpr detail::recurrent_core core(shape in) const {
    return {{recurrence::lstm, in.height * in.width, units, reverse, last, forget_bias},
            std::size_t(in.channels),
            false};
  }
};

/// A gated recurrent unit (Cho et al., 2014) over the places of a sample, in the order of `lstm`. Each step
/// has z, r = σ(·) of x W + b + h R + b' and n = tanh(x W + b + r ∘ (h R + b')). Then h ← z ∘ h + (1 − z) ∘
/// n.
///
/// It equals Keras' GRU with `reset_after`. Columns are ordered z, r, n, kernels are (c, 3 units) and (units,
/// 3 units), and there are two biases of 3 units. It runs on the processor.
struct gru : detail::recurrent_layer<gru> {
  int units = 0;
  bool reverse = false;
  bool last = false;
  initializer kernel_initializer = glorot_uniform{};
  initializer recurrent_initializer = glorot_uniform{};

  static constexpr std::string_view name = "gru";

  constexpr detail::recurrent_core core(shape in) const {
    return {{recurrence::gru, in.height * in.width, units, reverse, last}, std::size_t(in.channels), true};
  }
};

/// A recurrent layer in both directions, each with its own variables; the channels of the second follow those
/// of the first. The layer must be `lstm` or `gru`, without `reverse`.
template <class Recurrent>
  requires requires(Recurrent l) { l.reverse = true; }
constexpr auto bidirectional(Recurrent forwards) {
  Recurrent backwards = forwards;
  backwards.reverse = !forwards.reverse;
  return concat(forwards, backwards);
}

}  // namespace edl::nn
