// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/core/unpack.hpp"

namespace edl::detail {

/// Samples, narrow or not, as scalars. Those that are narrow are widened and rounded part by part, in a
/// thread's room of that number. A part is valid until the next one.
template <class T>
class narrow_samples {
 public:
  narrow_samples(basic_cpu<T>& cpu, int thread, std::size_t room, T const* samples, bool narrow)
      : cpu_(cpu), thread_(thread), which_(room), samples_(samples), narrow_(narrow && samples) {}

  /// Elements [first, first + n); null where there are no samples.
  T const* read(std::size_t first, std::size_t n) const {
    if (!narrow_) return samples_ ? samples_ + first : nullptr;
    T* const part = room(n);
    if constexpr (std::same_as<T, float>) widen_here(n, numbers() + first, part);
    return part;
  }
  /// Where these elements are to be left.
  T* place(std::size_t first, std::size_t n) const {
    return narrow_ ? room(n) : const_cast<T*>(samples_) + first;
  }
  /// They have been left there.
  void write(std::size_t first, std::size_t n) const {
    if constexpr (std::same_as<T, float>)
      if (narrow_) round_here(n, room(n), const_cast<std::uint16_t*>(numbers()) + first);
  }

 private:
  T* room(std::size_t n) const { return cpu_.room(thread_, which_, n).data(); }
  std::uint16_t const* numbers() const { return reinterpret_cast<std::uint16_t const*>(samples_); }

  basic_cpu<T>& cpu_;
  int thread_;
  std::size_t which_;
  T const* samples_;
  bool narrow_;
};

/// Where samples begin, narrow or not; null where there are none.
template <class T>
struct samples_at {
  T const* first;
  bool narrow;
};

/// work(n, where n elements of `to` are left, n elements of each of `from` …) for n elements at a time, on
/// all threads. These are a thread's share of at least so many, or, where some are narrow, what a core's
/// first cache holds. What is empty is null.
template <class T, class Work, class... From>
void by_parts(basic_cpu<T>& cpu, std::size_t n, std::size_t least, Work const& work, samples_at<T> to,
              From... from) {
  cpu.share(n, cpu.parts(n, least), [&](std::size_t begin, std::size_t end, int t) {
    std::size_t room = 1;
    narrow_samples<T> const left(cpu, t, 0, to.first, to.narrow);
    std::array const read{narrow_samples<T>(cpu, t, room++, from.first, from.narrow)...};
    std::size_t const most = to.narrow || (from.narrow || ...) ? 2048 : end - begin;
    for (std::size_t i = begin; i < end; i += most) {
      std::size_t const some = std::min(most, end - i);
      edl::unpack([&](auto const&... s) { work(some, left.place(i, some), s.read(i, some)...); }, read);
      left.write(i, some);
    }
  });
}

}  // namespace edl::detail
