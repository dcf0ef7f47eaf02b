// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/bfloat16.hpp"

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

}  // namespace edl::detail
