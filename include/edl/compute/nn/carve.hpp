// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace edl::nn {

/// The size of a part of an arena, rounded up so that the next one starts on a cache line.
constexpr std::size_t rounded(std::size_t size) { return (size + 15) / 16 * 16; }

/// Allocates parts of an arena from its start. `T` may be const.
template <class T>
class carver {
 public:
  constexpr explicit carver(std::span<T> all) : rest_(all) {}

  /// The next `size` elements, one after the other.
  constexpr std::span<T> next(std::size_t size) {
    auto const part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }

  /// The next `size` elements, and skips up to `rounded(size)`.
  constexpr std::span<T> aligned(std::size_t size) { return next(rounded(size)).first(size); }

  constexpr std::span<T> rest() const { return rest_; }

 private:
  std::span<T> rest_;
};

}  // namespace edl::nn
