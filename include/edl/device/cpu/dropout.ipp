// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/draw_blocks.hpp"

namespace edl {
template <class T>
void basic_cpu<T>::dropout_forward(T rate, random_stream const& random, view<T> x, std::span<T> y,
                                   std::span<std::byte> mask) {
  // uniform(i) >= rate, without the conversion: both sides in units of 2^-24.
  std::uint32_t const least = detail::least_kept(double(rate));
  T const scale = T(1) / (T(1) - rate);
  // With fewer blocks the compiler unrolls the rounds instead of making vectors of them.
  constexpr std::size_t blocks = 64, lanes = 4 * blocks;
  std::size_t const groups = (y.size() + lanes - 1) / lanes;
  // By value: what is written may be anything, but not what stands in registers.
  this->share(groups, this->parts(groups, 16), [=](std::size_t first, std::size_t last, int) {
    std::array<std::uint32_t, lanes> drawn;
    for (std::size_t begin = first * lanes; begin < std::min(last * lanes, y.size()); begin += lanes) {
      detail::draw_blocks(random, begin / 4, drawn);
      std::size_t const n = std::min(lanes, y.size() - begin);
      T const* const from = x.data() + begin;
      T* __restrict const to = y.data() + begin;
      std::byte* __restrict const kept = mask.data() + begin;
      for (std::size_t i = 0; i < n; ++i) {
        bool const keep = (drawn[i] >> 8) >= least;
        to[i] = from[i] * (keep ? scale : T(0));
        kept[i] = std::byte(keep);
      }
    }
  });
}

template <class T>
void basic_cpu<T>::dropout_backward(T rate, std::span<std::byte const> mask, view<T> dy, std::span<T> dx) {
  T const scale = T(1) / (T(1) - rate);
  T const* const from = dy.data();
  T* __restrict const to = dx.data();
  auto const* const kept = reinterpret_cast<std::uint8_t const*>(mask.data());
  this->share(dx.size(), this->parts(dx.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) to[i] = from[i] * (scale * T(int(kept[i])));
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::dropout_forward(float, random_stream const&, view<float>, std::span<float>,
                                                std::span<std::byte>);
template void basic_cpu<double>::dropout_forward(double, random_stream const&, view<double>,
                                                 std::span<double>, std::span<std::byte>);
template void basic_cpu<float>::dropout_backward(float, std::span<std::byte const>, view<float>,
                                                 std::span<float>);
template void basic_cpu<double>::dropout_backward(double, std::span<std::byte const>, view<double>,
                                                  std::span<double>);
#endif

}  // namespace edl
