// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/draw_blocks.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"

namespace edl {
template <class T>
void basic_cpu<T>::dropout_forward(T rate, random_stream const& random, view<T> x, std::span<T> y,
                                   std::span<std::byte> mask, bfloat16_io narrow) {
  // uniform(i) >= rate, without the conversion: both sides in units of 2^-24.
  std::uint32_t const least = detail::least_kept(double(rate));
  T const scale = T(1) / (T(1) - rate);
  // With fewer blocks the compiler unrolls the rounds instead of making vectors of them.
  constexpr std::size_t blocks = 64, lanes = 4 * blocks;
  std::size_t const all = elements_of(y.size(), narrow.out), groups = (all + lanes - 1) / lanes;
  // Captures by value: the stores may alias anything in memory, but not values in registers.
  this->share(groups, this->parts(groups, 16), [=, this](std::size_t first, std::size_t last, int t) {
    detail::narrow_samples<T> const in(*this, t, 1, x.data(), narrow.in),
        out(*this, t, 2, y.data(), narrow.out);
    std::array<std::uint32_t, lanes> drawn;
    for (std::size_t begin = first * lanes; begin < std::min(last * lanes, all); begin += lanes) {
      detail::draw_blocks(random, begin / 4, drawn);
      std::size_t const n = std::min(lanes, all - begin);
      T const* const from = in.read(begin, n);
      T* __restrict const to = out.place(begin, n);
      std::byte* __restrict const kept = mask.data() + begin;
      for (std::size_t i = 0; i < n; ++i) {
        bool const keep = (drawn[i] >> 8) >= least;
        to[i] = from[i] * (keep ? scale : T(0));
        kept[i] = std::byte(keep);
      }
      out.write(begin, n);
    }
  });
}

template <class T>
void basic_cpu<T>::dropout_backward(T rate, std::span<std::byte const> mask, view<T> dy, std::span<T> dx,
                                    bfloat16_io narrow) {
  T const scale = T(1) / (T(1) - rate);
  auto const* const kept = reinterpret_cast<std::uint8_t const*>(mask.data());
  std::size_t const all = elements_of(dx.size(), narrow.in);
  this->share(all, this->parts(all, 16 * 1024), [&, scale](std::size_t begin, std::size_t end, int t) {
    detail::narrow_samples<T> const slope(*this, t, 1, dy.data(), narrow.out),
        back(*this, t, 2, dx.data(), narrow.in);
    std::size_t const most = narrow.any() ? 2048 : end - begin;
    for (; begin < end; begin += most) {
      std::size_t const n = std::min(most, end - begin);
      T const* const from = slope.read(begin, n);
      T* __restrict const to = back.place(begin, n);
      std::uint8_t const* const of = kept + begin;
#pragma GCC ivdep
      for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * (scale * T(int(of[i])));
      back.write(begin, n);
    }
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::dropout_forward(float, random_stream const&, view<float>, std::span<float>,
                                                std::span<std::byte>, bfloat16_io);
template void basic_cpu<double>::dropout_forward(double, random_stream const&, view<double>,
                                                 std::span<double>, std::span<std::byte>, bfloat16_io);
template void basic_cpu<float>::dropout_backward(float, std::span<std::byte const>, view<float>,
                                                 std::span<float>, bfloat16_io);
template void basic_cpu<double>::dropout_backward(double, std::span<std::byte const>, view<double>,
                                                  std::span<double>, bfloat16_io);
#endif

}  // namespace edl
