// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <deque>
#include <memory>
#include <utility>

#include "edl/compute/device/buffer.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/int8.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/core/inline.hpp"

namespace edl::detail {

constexpr float most_of_int8 = 127;

/// The greatest magnitude of numbers; a NaN if one of them is not finite.
template <class V>
struct magnitude {
  V most{}, flaw{};

  void add(V const& x) {
    V const a = x < V{} ? -x : x;
    most = a > most ? a : most;
    flaw += x * 0;
  }
  V scale() const {
    V const s = most / most_of_int8 + flaw;
    return s == 0 ? V{} + 1 : s;
  }
};

/// to[0 …] = x · inverse, as whole numbers from −127 to 127; 0 for a NaN.
template <class V, class Q>
void store_quantised(Q* to, V const& x, V const& inverse) {
  // Added and taken away, this leaves the nearest whole number, ties to even.
  constexpr float shift = 0x1.8p23f;
  V const most = V{} + most_of_int8;
  V v = x * inverse;
  v = v < -most ? -most : v;
  v = v > most ? most : v;
  v = v + shift - shift;
  v = v == v ? v : V{};
  if constexpr (std::same_as<Q, float>) {
    store<V>(to, v);
  } else if constexpr (std::same_as<V, float>) {
    *to = Q(v);
  } else {
    // The lowest byte of each whole number. A plain conversion to bytes would take them out one by one.
    typedef std::int32_t whole __attribute__((vector_size(32)));
    typedef std::int8_t bytes __attribute__((vector_size(32)));
    typedef std::int8_t narrow __attribute__((vector_size(8)));
    bytes const all = std::bit_cast<bytes>(__builtin_convertvector(v, whole));
    store<narrow>(to, narrow(__builtin_shufflevector(all, all, 0, 4, 8, 12, 16, 20, 24, 28)));
  }
}

template <class Q>
void quantise_rows(basic_cpu<float>& cpu, std::size_t rows, std::size_t columns, float const* x, Q* q,
                   std::span<float> scales) {
  cpu.share(rows, cpu.parts(rows * columns, 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    typedef float vector __attribute__((vector_size(32)));
    for (std::size_t i = begin; i < end; ++i) {
      float const* const from = x + i * columns;
      Q* const to = q + i * columns;
      magnitude<float> of_row;
      magnitude<vector> of_lanes;
      by_lanes<float>(columns, [&]<class V>(std::size_t k) {
        if constexpr (std::same_as<V, float>)
          of_row.add(from[k]);
        else
          of_lanes.add(load<V>(from + k));
      });
      for (std::size_t lane = 0; lane < lanes<float>::count; ++lane) {
        of_row.add(of_lanes.most[lane]);
        of_row.flaw += of_lanes.flaw[lane];
      }
      scales[i] = of_row.scale();
      float const inverse = 1 / scales[i];
      by_lanes<float>(columns, [&]<class V>(std::size_t k) {
        store_quantised<V>(to + k, load<V>(from + k), V{} + inverse);
      });
    }
  });
}

template <class Q>
void quantise_columns(basic_cpu<float>& cpu, std::size_t rows, std::size_t columns, float const* x, Q* q,
                      std::span<float> scales) {
  constexpr std::size_t unit = 64;  // columns: some whole cache lines of each row
  cpu.share((columns + unit - 1) / unit, cpu.parts(rows * columns, 16 * 1024),
            [=](std::size_t begin, std::size_t end, int) {
              for (std::size_t first = begin * unit; first < std::min(end * unit, columns); first += unit) {
                std::size_t const n = std::min(unit, columns - first);
                float most[unit] = {}, flaw[unit] = {}, inverse[unit];
                for (std::size_t i = 0; i < rows; ++i)
                  by_lanes<float>(n, [&]<class V>(std::size_t k) {
                    magnitude<V> so_far{load<V>(most + k), load<V>(flaw + k)};
                    so_far.add(load<V>(x + i * columns + first + k));
                    store<V>(most + k, so_far.most);
                    store<V>(flaw + k, so_far.flaw);
                  });
                by_lanes<float>(n, [&]<class V>(std::size_t k) {
                  V const scale = magnitude<V>{load<V>(most + k), load<V>(flaw + k)}.scale();
                  store<V>(scales.data() + first + k, scale);
                  store<V>(inverse + k, V(1 / scale));
                });
                for (std::size_t i = 0; i < rows; ++i)
                  by_lanes<float>(n, [&]<class V>(std::size_t k) {
                    std::size_t const at = i * columns + first + k;
                    store_quantised<V>(q + at, load<V>(x + at), load<V>(inverse + k));
                  });
              }
            });
}

/// Quantised kernels, each as it was when the device was last told that kernels were written.
struct kept_kernels final : kernel_store {
  struct one {
    float const* weights;
    std::size_t depth, outputs, bytes;  ///< bytes of a number
    std::uint64_t written = 0;
    aligned_buffer<float> numbers{}, scales{};
  };
  std::deque<one> all;

  /// Those of a kernel, which may have to be quantised yet.
  one& find(one const& like) {
    for (one& k : all)
      if (k.weights == like.weights && k.depth == like.depth && k.outputs == like.outputs &&
          k.bytes == like.bytes)
        return k;
    std::size_t const floats = (like.depth * like.outputs * like.bytes + sizeof(float) - 1) / sizeof(float);
    return all.emplace_back(one{like.weights, like.depth, like.outputs, like.bytes, 0,
                                aligned_buffer<float>(floats), aligned_buffer<float>(like.outputs)});
  }
};

template <class Q>
quantised<Q> quantise(basic_cpu<float>& cpu, std::size_t samples, std::size_t width, view<float> x,
                      std::size_t depth, std::size_t outputs, view<float> kernel) {
  constexpr std::size_t x_room = 2, scale_room = 3, kernel_room = 4;
  auto const scales = cpu.room(0, scale_room, samples + outputs);
  quantised<Q> q{reinterpret_cast<Q*>(cpu.room(0, x_room, x.size()).data()), nullptr, scales.first(samples),
                 scales.subspan(samples, outputs)};
  quantise_rows(cpu, samples, width, x.data(), q.x, q.of_samples);
  if (cpu.written() == 0) {
    q.kernel = reinterpret_cast<Q*>(cpu.room(0, kernel_room, kernel.size()).data());
    quantise_columns(cpu, depth, outputs, kernel.data(), q.kernel, q.of_outputs);
    return q;
  }
  if (!cpu.quantised()) cpu.quantised() = std::make_unique<kept_kernels>();
  auto& kept = static_cast<kept_kernels&>(*cpu.quantised()).find({kernel.data(), depth, outputs, sizeof(Q)});
  q.kernel = reinterpret_cast<Q*>(kept.numbers.span().data());
  q.of_outputs = kept.scales.span();
  if (std::exchange(kept.written, cpu.written()) != cpu.written())
    quantise_columns(cpu, depth, outputs, kernel.data(), q.kernel, q.of_outputs);
  return q;
}

EDL_INLINE void finish_int8(basic_cpu<float>& cpu, std::size_t samples, std::size_t places,
                            std::size_t outputs, std::span<float const> of_samples,
                            std::span<float const> of_outputs, int8_sums sums, activation f, view<float> bias,
                            std::span<float> y) {
  std::size_t const rows = samples * places;
  cpu.share(rows, cpu.parts(rows * outputs, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      float const scale = of_samples[i / places];
      float* const to = y.data() + i * outputs;
      for (std::size_t k = 0; k < outputs; ++k) {
        float const sum = sums == int8_sums::whole ? float(std::bit_cast<std::int32_t>(to[k])) : to[k];
        float const z = sum * (scale * of_outputs[k]) + (bias.empty() ? 0 : bias[k]);
        to[k] = f == activation::relu && z < 0 ? 0 : z;
      }
    }
  });
}

#ifndef EDL_HEADER_ONLY
template quantised<std::int8_t> quantise(basic_cpu<float>&, std::size_t, std::size_t, view<float>,
                                         std::size_t, std::size_t, view<float>);
template quantised<float> quantise(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::size_t,
                                   std::size_t, view<float>);
#endif

}  // namespace edl::detail
