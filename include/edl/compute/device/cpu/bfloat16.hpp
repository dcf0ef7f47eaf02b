// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/core/span.hpp"

namespace edl {

template <class T>
class basic_cpu;

}  // namespace edl

namespace edl::detail {

#ifdef __x86_64__
/// Whether the processor has instructions to round and multiply bfloat16.
inline bool has_bfloat16_instructions() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
}
#endif

/// y = x rounded to bfloat16, with the processor's own instruction if it has one. That instruction treats
/// numbers below the smallest normal one (1.2e-38) as zero.
void round_here(std::size_t n, float const* x, std::uint16_t* y);

/// The same, and back to float32: y has 8 bits of each number.
void round_here(std::size_t n, float const* x, float* y);

/// y = x, which is exact.
void widen_here(std::size_t n, std::uint16_t const* x, float* y);

/// y (rows × columns, without gaps) = x rounded to bfloat16, on all of the device's threads. The bits are the
/// same for any number of them.
template <class T, class Out>
void round_matrix(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, T const* x, std::size_t stride,
                  Out* y) {
  if (stride == columns) {
    columns *= rows;
    rows = 1;
  }
  constexpr std::size_t unit = 64, least = 16 * 1024;
  std::size_t const across = (columns + unit - 1) / unit;
  cpu.share(rows * across, cpu.parts(rows * columns, least), [=](std::size_t begin, std::size_t end, int) {
    while (begin < end) {
      std::size_t const row = begin / across, at = begin % across, some = std::min(across - at, end - begin),
                        first = at * unit, last = std::min((at + some) * unit, columns);
      round_here(last - first, x + row * stride + first, y + row * columns + first);
      begin += some;
    }
  });
}

/// n elements that may be narrow, as scalars: x itself, or widened into a room of the first thread.
template <class T>
view<T> widened(basic_cpu<T>& cpu, std::size_t room, std::size_t n, view<T> x, bool narrow) {
  if (!narrow) return x;
  auto const to = cpu.room(0, room, n);
  cpu.load_bfloat16(std::as_bytes(x), to);
  return to;
}

/// Calls work(to), which writes n scalars to `to`, and stores them in y, narrow or not. If y is empty, so is
/// `to`.
template <class T, class Work>
void narrowed(basic_cpu<T>& cpu, std::size_t room, std::size_t n, std::span<T> y, bool narrow, Work&& work) {
  if (y.empty() || !narrow) return work(y);
  auto const to = cpu.room(0, room, n);
  work(to);
  cpu.store_bfloat16(to, std::as_writable_bytes(y));
}

/// x itself if the device does not round; otherwise a copy rounded to bfloat16 in that room of the first
/// thread.
template <class T>
view<T> factor(basic_cpu<T>& cpu, std::size_t room, view<T> x) {
  if constexpr (std::same_as<T, float>)
    if (cpu.rounds()) {
      auto const to = cpu.room(0, room, x.size());
      round_matrix(cpu, 1, x.size(), x.data(), x.size(), to.data());
      return to;
    }
  return x;
}

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/bfloat16.ipp"
#endif
