// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/recurrent_product.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"

namespace edl {
namespace detail {

/// How threads share the units of a recurrent layer, and the order of its steps. Samples with more steps come
/// first, so that in each turn the active samples are the first ones.
struct recurrent_share {
  recurrent_geometry const& g;
  kept_places const& kept;
  std::size_t batch, steps, units, columns;  ///< columns: of all gates
  product_split split;                       ///< the threads' units

  template <class T>
  recurrent_share(basic_cpu<T>& cpu, recurrent_geometry const& of, kept_places const& places, int samples)
      : g(of),
        kept(places),
        batch(std::size_t(samples)),
        steps(std::size_t(of.steps)),
        units(std::size_t(of.units)),
        columns(of.gate_columns()),
        split{.extent = units} {
    constexpr std::size_t worthwhile = 32 * 1024;  // multiplications of a step that are worth a thread
    split.parts = std::min(cpu.parts(split.units(), 1), cpu.parts(batch * units * columns, worthwhile));
  }
  /// The units of a thread: [first(t), first(t + 1)).
  std::size_t first(int thread) const { return split.begin(thread); }
  /// The sample at position `at` of the order, and the number of its steps.
  std::size_t sample(std::size_t at) const { return kept.all() ? at : std::size_t(kept.longest[at]); }
  std::size_t steps_of(std::size_t at) const {
    return kept.all() ? steps : std::size_t(kept.counts[sample(at)]);
  }
  std::size_t turns() const { return batch == 0 ? 0 : steps_of(0); }
  /// The number of samples that have a step in this turn.
  std::size_t active(std::size_t turn) const {
    if (kept.all()) return turn < steps ? batch : 0;
    std::size_t n = batch;
    while (n > 0 && steps_of(n - 1) <= turn) --n;
    return n;
  }
  /// The row of step number `turn` of the sample at position `at`.
  std::size_t row(std::size_t at, std::size_t turn) const {
    std::size_t const own = sample(at), number = g.reverse ? steps_of(at) - 1 - turn : turn;
    return own * steps + (kept.all() ? number : std::size_t(kept.of(own)[number]));
  }
  /// Zeros the rows of `columns` elements that are padding.
  template <class T>
  void clear(std::span<T> rows, std::size_t width) const {
    for (std::size_t own = 0; own < batch && !kept.all(); ++own)
      kept.each_padded(own, [&](std::size_t step) {
        std::fill_n(rows.data() + (own * steps + step) * width, width, T(0));
      });
  }
};

/// The gates of one unit in the forward pass. On entry `g` holds the contributions of the inputs, on return
/// the gates; `z` holds the contribution of the previous step. Returns the result.
template <class V, class T>
V lstm_forward(recurrent_geometry const& of, std::size_t own, T* g, T const* z, T const* before, T* cell) {
  auto const n = std::size_t(of.units);
  auto const in = [&](std::size_t gate) {
    V const given = load<V>(g + gate * n);
    return z ? V(given + load<V>(z + gate * own)) : given;
  };
  V const input = logistic(in(0)), forget = logistic(V(in(1) + T(of.forget_bias))),
          candidate = hyperbolic_tangent(in(2)), output = logistic(in(3));
  V c = input * candidate;
  if (before) c += forget * load<V>(before);
  store<V>(g, input), store<V>(g + n, forget), store<V>(g + 2 * n, candidate), store<V>(g + 3 * n, output);
  store<V>(cell, c);
  return output * hyperbolic_tangent(c);
}

template <class V, class T>
V gru_forward(recurrent_geometry const& of, std::size_t own, T* g, T const* z, T const* bias, T const* before,
              T* state) {
  auto const n = std::size_t(of.units);
  auto const product = [&](std::size_t gate) {
    V const b = load<V>(bias + gate * n);
    return z ? V(b + load<V>(z + gate * own)) : b;
  };
  V const update = logistic(V(load<V>(g) + product(0))), reset = logistic(V(load<V>(g + n) + product(1)));
  V const q = product(2), candidate = hyperbolic_tangent(V(load<V>(g + 2 * n) + reset * q));
  V y = candidate - update * candidate;
  if (before) y += update * load<V>(before);
  store<V>(g, update), store<V>(g + n, reset), store<V>(g + 2 * n, candidate);
  store<V>(state, q);
  return y;
}

/// The gradients of the gates of one unit. `dh`: gradient of the result; `dc`: gradient of the cell, passed
/// to the previous step. `dz` receives the product's gradients, gate by gate.
template <class V, class T>
void lstm_backward(recurrent_geometry const& of, V const& dh, T* g, T const* cell, T const* before, T* dc,
                   T* dz) {
  auto const n = std::size_t(of.units);
  V const input = load<V>(g), forget = load<V>(g + n), candidate = load<V>(g + 2 * n),
          output = load<V>(g + 3 * n), t = hyperbolic_tangent(V(load<V>(cell)));
  V const slope = dh * output * (1 - t * t) + load<V>(dc);
  store<V>(dc, slope * forget);
  V const old = before ? V(load<V>(before)) : V{};
  V const d[4] = {slope * candidate * input * (1 - input), slope * old * forget * (1 - forget),
                  slope * input * (1 - candidate * candidate), dh * t * output * (1 - output)};
  for (std::size_t gate = 0; gate < 4; ++gate)
    store<V>(g + gate * n, d[gate]), store<V>(dz + gate * n, d[gate]);
}

/// Sets `dh` to the part of the gradient that reaches the previous step without the product.
template <class V, class T>
void gru_backward(recurrent_geometry const& of, V const& slope, T* g, T const* state, T const* before, T* dh,
                  T* dz) {
  auto const n = std::size_t(of.units);
  V const update = load<V>(g), reset = load<V>(g + n), candidate = load<V>(g + 2 * n), q = load<V>(state);
  V const old = before ? V(load<V>(before)) : V{};
  V const dn = slope * (1 - update) * (1 - candidate * candidate);
  V const d[3] = {slope * (old - candidate) * update * (1 - update), dn * q * reset * (1 - reset), dn};
  for (std::size_t gate = 0; gate < 3; ++gate)
    store<V>(g + gate * n, d[gate]), store<V>(dz + gate * n, d[gate]);
  store<V>(dz + 2 * n, dn * reset);
  store<V>(dh, slope * update);
}

}  // namespace detail

template <class T>
void basic_cpu<T>::recurrent_forward(recurrent_geometry const& g, int batch, view<T> kernel, view<T> bias,
                                     std::span<T> gates, std::span<T> states, std::span<T> y) {
  masked_recurrent_forward(g, batch, {}, kernel, bias, gates, states, y);
}

template <class T>
void basic_cpu<T>::recurrent_backward(recurrent_geometry const& g, int batch, view<T> kernel, view<T> states,
                                      view<T> y, view<T> dy, std::span<T> gates, std::span<T> drecurrent) {
  masked_recurrent_backward(g, batch, {}, kernel, states, y, dy, gates, drecurrent);
}

template <class T>
void basic_cpu<T>::masked_recurrent_forward(recurrent_geometry const& g, int batch, kept_places const& places,
                                            view<T> kernel, view<T> bias, std::span<T> gates,
                                            std::span<T> states, std::span<T> y) {
  using namespace detail;
  recurrent_share const s(*this, g, places, batch);
  std::size_t const n = s.units, rows = s.batch;
  s.clear(states, n);
  s.clear(y, n);
  recurrent_product<T> products(*this, rows, n, s.split, g.gates(), {nullptr, 0}, places.all());
  for (std::size_t turn = 0; turn < s.turns(); ++turn) {
    std::size_t const active = s.active(turn);
    this->team().run(s.split.parts, [&](int t) {
      std::size_t const first = s.first(t), own = s.first(t + 1) - first, wide = g.gates() * own;
      if (turn == 0) {  // the columns of the thread's units, side by side
        T* const part = products.part(t);
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t gate = 0; gate < g.gates(); ++gate)
            std::copy_n(kernel.data() + k * s.columns + gate * n + first, own, part + k * wide + gate * own);
        products.take(t, {part, wide});
      }
      T const* const product = turn > 0 ? products.multiply(t, turn - 1, active) : nullptr;
      T* const now = products.rows_of(turn);
      for (std::size_t at = 0; at < active; ++at) {
        std::size_t const row = s.row(at, turn), past = turn > 0 ? s.row(at, turn - 1) : 0;
        T* const of_row = gates.data() + row * s.columns + first;
        T* const state = states.data() + row * n + first;
        T const* const old = (g.kind == recurrence::lstm ? states.data() : y.data()) + past * n + first;
        by_lanes<T>(own, [&]<class V>(std::size_t i) {
          T const* const z = turn > 0 ? product + at * wide + i : nullptr;
          T const* const before = turn > 0 ? old + i : nullptr;
          V const out =
              g.kind == recurrence::lstm
                  ? lstm_forward<V>(g, own, of_row + i, z, before, state + i)
                  : gru_forward<V>(g, own, of_row + i, z, bias.data() + first + i, before, state + i);
          detail::store<V>(now + at * n + first + i, out);
          detail::store<V>(y.data() + row * n + first + i, out);
        });
        products.written(turn, at, first, own);
      }
    });
  }
}

template <class T>
void basic_cpu<T>::masked_recurrent_backward(recurrent_geometry const& g, int batch,
                                             kept_places const& places, view<T> kernel, view<T> states,
                                             view<T> y, view<T> dy, std::span<T> gates,
                                             std::span<T> drecurrent) {
  using namespace detail;
  recurrent_share const s(*this, g, places, batch);
  std::size_t const n = s.units, rows = s.batch, wide = s.columns, turns = s.turns();
  s.clear(gates, wide);
  if (!drecurrent.empty()) s.clear(drecurrent, wide);
  recurrent_product<T> products(*this, rows, wide, s.split, 1, {nullptr, wide, true}, places.all());
  for (std::size_t turn = turns; turn-- > 0;) {
    // These samples have a later step; for the others this step is the last.
    std::size_t const active = s.active(turn), going_on = s.active(turn + 1);
    this->team().run(s.split.parts, [&](int t) {
      std::size_t const first = s.first(t), own = s.first(t + 1) - first;
      T* const carried = this->room(t, products.free_room, rows * own).data();
      if (turn + 1 == turns) products.take(t, {kernel.data() + first * wide, wide, true});
      T* const product = products.multiply(t, turn + 1, going_on);
      std::fill(carried + going_on * own, carried + active * own, T(0));
      std::fill(product + going_on * own, product + active * own, T(0));
      T* const now = products.rows_of(turn);
      for (std::size_t at = 0; at < active; ++at) {
        std::size_t const row = s.row(at, turn), past = turn > 0 ? s.row(at, turn - 1) : 0;
        T* const of_row = gates.data() + row * wide + first;
        T const* const state = states.data() + row * n + first;
        T const* const old = (g.kind == recurrence::lstm ? states.data() : y.data()) + past * n + first;
        T const* const given = !g.last          ? dy.data() + row * n + first
                               : at >= going_on ? dy.data() + s.sample(at) * n + first
                                                : nullptr;
        T *const dz = now + at * wide + first, *const kept = carried + at * own;
        by_lanes<T>(own, [&]<class V>(std::size_t i) {
          V slope = load<V>(product + at * own + i);
          if (given) slope += load<V>(given + i);
          T const* const before = turn > 0 ? old + i : nullptr;
          if (g.kind == recurrence::lstm) {
            lstm_backward<V>(g, slope, of_row + i, state + i, before, kept + i, dz + i);
          } else {
            slope += load<V>(kept + i);
            gru_backward<V>(g, slope, of_row + i, state + i, before, kept + i, dz + i);
          }
        });
        if (!drecurrent.empty())
          for (std::size_t gate = 0; gate < g.gates(); ++gate)
            std::copy_n(dz + gate * n, own, drecurrent.data() + row * wide + gate * n + first);
        for (std::size_t gate = 0; gate < g.gates(); ++gate)
          products.written(turn, at, gate * n + first, own);
      }
    });
  }
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::recurrent_forward(recurrent_geometry const&, int, view<float>, view<float>,
                                                  std::span<float>, std::span<float>, std::span<float>);
template void basic_cpu<double>::recurrent_forward(recurrent_geometry const&, int, view<double>, view<double>,
                                                   std::span<double>, std::span<double>, std::span<double>);
template void basic_cpu<float>::masked_recurrent_forward(recurrent_geometry const&, int, kept_places const&,
                                                         view<float>, view<float>, std::span<float>,
                                                         std::span<float>, std::span<float>);
template void basic_cpu<double>::masked_recurrent_forward(recurrent_geometry const&, int, kept_places const&,
                                                          view<double>, view<double>, std::span<double>,
                                                          std::span<double>, std::span<double>);
template void basic_cpu<float>::masked_recurrent_backward(recurrent_geometry const&, int, kept_places const&,
                                                          view<float>, view<float>, view<float>, view<float>,
                                                          std::span<float>, std::span<float>);
template void basic_cpu<double>::masked_recurrent_backward(recurrent_geometry const&, int, kept_places const&,
                                                           view<double>, view<double>, view<double>,
                                                           view<double>, std::span<double>,
                                                           std::span<double>);
template void basic_cpu<float>::recurrent_backward(recurrent_geometry const&, int, view<float>, view<float>,
                                                   view<float>, view<float>, std::span<float>,
                                                   std::span<float>);
template void basic_cpu<double>::recurrent_backward(recurrent_geometry const&, int, view<double>,
                                                    view<double>, view<double>, view<double>,
                                                    std::span<double>, std::span<double>);
#endif

}  // namespace edl
