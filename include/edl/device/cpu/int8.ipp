// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "edl/core/inline.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/int8.hpp"

namespace edl::detail {

constexpr float most_of_int8 = 127;

inline float scale_of(float greatest) { return greatest == 0 ? 1 : greatest / most_of_int8; }

/// A NaN counts as more than any number.
inline float greater_magnitude(float most, float x) {
  float const a = std::fabs(x);
  return a <= most || std::isnan(most) ? most : a;
}

template <class Q>
Q quantised_number(float x, float inverse) {
  // Added and taken away, this leaves the nearest whole number, ties to even.
  constexpr float shift = 0x1.8p23f;
  float const whole = std::clamp(x * inverse, -most_of_int8, most_of_int8) + shift - shift;
  return whole == whole ? Q(whole) : Q(0);
}

template <class Q>
void quantise_rows(basic_cpu<float>& cpu, std::size_t rows, std::size_t columns, float const* x, Q* q,
                   std::span<float> scales) {
  cpu.share(rows, cpu.parts(rows * columns, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      float const* const from = x + i * columns;
      Q* __restrict const to = q + i * columns;
      float most = 0;
      for (std::size_t k = 0; k < columns; ++k) most = greater_magnitude(most, from[k]);
      scales[i] = scale_of(most);
      float const inverse = 1 / scales[i];
      for (std::size_t k = 0; k < columns; ++k) to[k] = quantised_number<Q>(from[k], inverse);
    }
  });
}

template <class Q>
void quantise_columns(basic_cpu<float>& cpu, std::size_t rows, std::size_t columns, float const* x, Q* q,
                      std::span<float> scales) {
  cpu.share(columns, cpu.parts(rows * columns, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    float* const of = scales.data();
    std::fill(of + begin, of + end, 0.0f);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = begin; k < end; ++k) of[k] = greater_magnitude(of[k], x[i * columns + k]);
    for (std::size_t k = begin; k < end; ++k) of[k] = scale_of(of[k]);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = begin; k < end; ++k)
        q[i * columns + k] = quantised_number<Q>(x[i * columns + k], 1 / of[k]);
  });
}

template <class Q>
quantised<Q> quantise(basic_cpu<float>& cpu, std::size_t samples, std::size_t width, view<float> x,
                      std::size_t depth, std::size_t outputs, view<float> kernel) {
  constexpr std::size_t x_room = 2, scale_room = 3, kernel_room = 4;
  auto const scales = cpu.room(0, scale_room, samples + outputs);
  quantised<Q> const q{reinterpret_cast<Q*>(cpu.room(0, x_room, x.size()).data()),
                       reinterpret_cast<Q*>(cpu.room(0, kernel_room, kernel.size()).data()),
                       scales.first(samples), scales.subspan(samples, outputs)};
  quantise_rows(cpu, samples, width, x.data(), q.x, q.of_samples);
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
