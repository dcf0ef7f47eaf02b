// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "edl/compute/device/cpu/gelu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"
#include "edl/compute/nn/expression/schedule.hpp"

namespace edl::nn::expression {

/// The addresses of a program's slots for one thread, and the strides between samples and between rows.
template <class T>
struct frame {
  std::array<T*, program::most_slots> at;
  std::array<std::size_t, program::most_slots> by_sample, by_row;
  std::size_t places, channels;  ///< of a sample
};

/// exp(z); 0 if single precision has no normal number for it.
template <class V>
[[gnu::always_inline]] inline V exponential(V const& z) {
  using T = typename edl::detail::lane<V>::type;
  V const y = edl::detail::exponential(z);
  if constexpr (sizeof(T) == 4)
    return z < T(-87) ? V{} : y;
  else
    return y;
}

/// One operation, on vectors or numbers.
template <operation O, class V>
[[gnu::always_inline]] inline V compute(V const& a, V const& b, V const& c) {
  using T = typename edl::detail::lane<V>::type;
  using enum operation;
  V const none{}, one = none + T(1);
  if constexpr (O == add)
    return a + b;
  else if constexpr (O == subtract)
    return a - b;
  else if constexpr (O == multiply)
    return a * b;
  else if constexpr (O == divide)
    return a / b;
  else if constexpr (O == power)
    return edl::detail::power(a, b);
  else if constexpr (O == least)  // a NaN of either is the result, so of the next one, too
    return b == b ? V(b < a ? b : a) : b;
  else if constexpr (O == greatest)
    return b == b ? V(a < b ? b : a) : b;
  else if constexpr (O == less)
    return a < b ? one : none;
  else if constexpr (O == less_equal)
    return a <= b ? one : none;
  else if constexpr (O == equal)
    return a == b ? one : none;
  else if constexpr (O == choose)
    return a != none ? b : c;
  else if constexpr (O == negate)
    return -a;
  else if constexpr (O == exp)
    return exponential(a);
  else if constexpr (O == expm1)
    return edl::detail::exponential_less_1(a);
  else if constexpr (O == log)
    return edl::detail::logarithm(a);
  else if constexpr (O == tanh)
    return edl::detail::hyperbolic_tangent(a);
  else if constexpr (O == sigmoid)
    return edl::detail::sigmoid_at(a).above;
  else if constexpr (O == softplus)
    return edl::detail::softplus(a);
  else if constexpr (O == normal_cdf)
    return edl::detail::normal_at(a).below;
  else if constexpr (O == normal_bell)
    return edl::detail::normal_at(a).bell;
  else if constexpr (O == square_root)
    return edl::detail::square_root(a);
  else if constexpr (O == absolute)
    return a <= none ? V(none - a) : a;  // 0 of −0
  else
    return a;  // same, stop
}

template <operation O, class T>
constexpr T neutral() {
  return is_peak(O) ? -std::numeric_limits<T>::infinity() : T(0);
}
template <operation O, class V>
[[gnu::always_inline]] inline V join(V const& a, V const& b) {
  if constexpr (O == operation::peak)
    return compute<operation::greatest>(a, b, b);
  else if constexpr (O == operation::peak_of_numbers)
    return a < b ? b : a;
  else
    return a + b;
}

/// The compiled form of a program.
template <program const& P>
struct loops {
  template <int B, int Section, int Run>
  static constexpr bool stands_in =
      P.blocks[std::size_t(B)].when.run == Run && P.blocks[std::size_t(B)].when.section == Section;

  template <class V, bool Whole, class T>
  [[gnu::always_inline]] static V get(T const* from, std::size_t valid) {
    if constexpr (Whole) return edl::detail::load<V>(from);
    return edl::detail::load_first<V>(from, valid);
  }
  template <bool Whole, class V, class T>
  [[gnu::always_inline]] static void put(T* to, V const& v, std::size_t valid) {
    if constexpr (Whole)
      edl::detail::store<V>(to, v);
    else
      edl::detail::store_first(to, v, valid);
  }

  /// Step K of a block, for the vector at element i.
  template <int First, int K, bool Whole, class V, class T>
  [[gnu::always_inline]] static void one(V* v, T* const* at, T const* numbers, V* sums, std::size_t i,
                                         std::size_t valid) {
    constexpr step s = P.steps[std::size_t(First + K)];
    if constexpr (s.kind == step_kind::load) {
      v[K] = get<V, Whole>(at[K] + i, valid);
    } else if constexpr (s.kind == step_kind::repeat) {
      v[K] = V{} + numbers[K];
    } else if constexpr (s.kind == step_kind::compute) {
      v[K] = compute<s.what>(v[s.a], v[s.b], v[s.c]);
      if constexpr (s.stores) put<Whole>(at[K] + i, v[K], valid);
    } else if constexpr (s.kind == step_kind::add_up) {
      if constexpr (Whole)
        sums[s.sum] = join<s.what>(sums[s.sum], v[s.a]);
      else
        sums[s.sum] =
            join<s.what>(sums[s.sum], edl::detail::first_lanes(v[s.a], valid, V(V{} + neutral<s.what, T>())));
    } else {
      put<Whole>(at[K] + i, join<s.what>(get<V, Whole>(at[K] + i, valid), v[s.a]), valid);
    }
  }

  template <int First, int K, class V, class T>
  [[gnu::always_inline]] static void begin_sum(V* sums) {
    constexpr step s = P.steps[std::size_t(First + K)];
    if constexpr (s.kind == step_kind::add_up) sums[s.sum] = V{} + neutral<s.what, T>();
  }
  template <int First, int K, class V, class T>
  [[gnu::always_inline]] static void end_sum(V const* sums, T* const* at) {
    constexpr step s = P.steps[std::size_t(First + K)];
    if constexpr (s.kind == step_kind::add_up) {
      T all = neutral<s.what, T>();
      for (std::size_t k = 0; k < edl::detail::lanes<T>::count; ++k)
        all = join<s.what>(all, T(sums[s.sum][k]));
      finish<P.slots[std::size_t(s.slot)].of>(at[K], all);
    }
  }
  /// A row's part of a reduction: all of it, or one of many.
  template <int Node, class T>
  [[gnu::always_inline]] static void finish(T* to, T part) {
    constexpr node n = P.nodes.all[std::size_t(Node)];
    *to = n.along == channels ? part : join<n.what>(*to, part);
  }

  /// The address of a slot at a row of a sample.
  template <int Slot, class T>
  [[gnu::always_inline]] static T* pointer(frame<T> const& f, std::size_t sample, std::size_t row) {
    if constexpr (Slot < 0) {
      return nullptr;
    } else {
      constexpr slot s = P.slots[std::size_t(Slot)];
      T* at = f.at[std::size_t(Slot)];
      if constexpr (has(s.over, samples) && !P.by_rows) at += sample * f.by_sample[std::size_t(Slot)];
      if constexpr (has(s.over, places)) at += row * f.by_row[std::size_t(Slot)];
      return at;
    }
  }

  /// A cumulative sum of a sample, from the first element or from the last.
  template <int Node, class T>
  static void scan(frame<T> const& f, std::size_t sample) {
    constexpr node n = P.nodes.all[std::size_t(Node)];
    constexpr int from = P.slot_of[std::size_t(n.a)], to = P.slot_of[std::size_t(Node)];
    constexpr bool back = n.what == operation::cumsum_back;
    std::size_t const rows = has(n.over, places) ? f.places : 1, row = has(n.over, channels) ? f.channels : 1;
    T const* before = nullptr;
    for (std::size_t k = 0; k < rows; ++k) {
      std::size_t const r = back ? rows - 1 - k : k;
      T const* const x = pointer<from>(f, sample, r);
      T* const y = pointer<to>(f, sample, r);
      T sum = 0;
      for (std::size_t j = 0; j < row; ++j) {
        std::size_t const i = back ? row - 1 - j : j;
        if constexpr (n.along == channels)
          y[i] = sum += x[i];
        else
          y[i] = before == nullptr ? x[i] : x[i] + before[i];
      }
      before = y;
    }
  }

  template <int Node, class T>
  [[gnu::always_inline]] static void scalar(frame<T> const& f, std::size_t sample, std::size_t row) {
    constexpr node n = P.nodes.all[std::size_t(Node)];
    auto const value = [&]<int Of>() {
      if constexpr (Of < 0)
        return T(0);
      else
        return *pointer<P.slot_of[std::size_t(Of)]>(f, sample, row);
    };
    T* const to = pointer<P.slot_of[std::size_t(Node)]>(f, sample, row);
    if constexpr (is_scan(n.what))
      scan<Node>(f, sample);
    else if constexpr (is_reduction(n.what))
      *to = join<n.what>(*to, value.template operator()<n.a>());
    else
      *to = compute<n.what>(value.template operator()<n.a>(), value.template operator()<n.b>(),
                            value.template operator()<n.c>());
  }

  /// Block B of a row of n elements.
  template <int B, class T>
  [[gnu::always_inline]] static void row(frame<T> const& f, std::size_t sample, std::size_t which,
                                         std::size_t n) {
    constexpr block b = P.blocks[std::size_t(B)];
    [&]<int... K>(std::integer_sequence<int, K...>) {
      (scalar<P.scalars[std::size_t(b.outer + K)]>(f, sample, which), ...);
    }(std::make_integer_sequence<int, b.numbers>{});
    if constexpr (b.count > 0)
      [&]<int... K>(std::integer_sequence<int, K...>) {
        using V = typename edl::detail::lanes<T>::type;
        constexpr std::size_t lanes = edl::detail::lanes<T>::count;
        T* const at[] = {pointer<P.steps[std::size_t(b.first + K)].slot>(f, sample, which)...};
        T const numbers[] = {number<b.first + K>(at[K])...};
        V sums[b.sums + 1];
        (begin_sum<b.first, K, V, T>(sums), ...);
        std::size_t i = 0;
        for (; i + lanes <= n; i += lanes) {
          V v[b.count];
          (one<b.first, K, true>(v, at, numbers, sums, i, lanes), ...);
        }
        if (i < n) {
          V v[b.count];
          (one<b.first, K, false>(v, at, numbers, sums, i, n - i), ...);
        }
        (end_sum<b.first, K>(sums, at), ...);
      }(std::make_integer_sequence<int, b.count>{});
  }
  template <int Step, class T>
  [[gnu::always_inline]] static T number(T const* at) {
    if constexpr (P.steps[std::size_t(Step)].kind == step_kind::repeat)
      return *at;
    else
      return 0;
  }

  /// Rows [first, end) of a section, each of `length` elements except the last one, which ends at `total`.
  template <int Run, int Section, class T>
  static void section(frame<T> const& f, std::size_t sample, std::size_t first, std::size_t end,
                      std::size_t length, std::size_t total) {
    [&]<int... B>(std::integer_sequence<int, B...>) {
      if constexpr ((stands_in<B, Section, Run> || ...)) {
        for (std::size_t r = first; r < end; ++r) {
          std::size_t const n = std::min(length, total - r * length);
          (
              [&] {
                if constexpr (stands_in<B, Section, Run>) row<B>(f, sample, r, n);
              }(),
              ...);
        }
      }
    }(std::make_integer_sequence<int, P.block_count>{});
  }

  /// Clears a sum that starts with each sample.
  template <int Run, int Slot, class T>
  [[gnu::always_inline]] static void begin_sample(frame<T> const& f, std::size_t which, std::size_t length) {
    constexpr slot s = P.slots[std::size_t(Slot)];
    constexpr node n = P.nodes.all[std::size_t(s.of)];
    if constexpr (s.run == Run && is_reduction(n.what) && has(n.along, places) && !has(n.along, samples))
      std::fill_n(f.at[std::size_t(Slot)] + which * f.by_sample[std::size_t(Slot)],
                  has(s.over, channels) ? length : 1, neutral<n.what, T>());
  }

  /// All sections of one sample with this many places.
  template <int Run, class T>
  static void sample(frame<T> const& f, std::size_t which, std::size_t rows, std::size_t length) {
    [&]<int... S>(std::integer_sequence<int, S...>) {
      (begin_sample<Run, S>(f, which, length), ...);
    }(std::make_integer_sequence<int, P.slot_count>{});
    [&]<int... S>(std::integer_sequence<int, S...>) {
      (section<Run, S>(f, which, 0, S % 2 == 0 ? 1 : rows, length, S % 2 == 0 ? length : rows * length), ...);
    }(std::make_integer_sequence<int, P.sections(Run)>{});
  }
};

}  // namespace edl::nn::expression
