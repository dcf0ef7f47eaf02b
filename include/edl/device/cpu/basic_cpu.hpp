// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/device/buffer.hpp"
#include "edl/device/device.hpp"

namespace edl {

/// One core of the processor at hand, with a workspace of its own, so that no operation allocates. Results do
/// not depend on the machine's caches: equal builds give equal bits. Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
template <class T>
class basic_cpu {
 public:
  using scalar = T;
  using buffer = aligned_buffer<T>;

  /// Elements of the two operands that a product packs at a time: one for the second level of cache, one
  /// beyond.
  static constexpr std::size_t packed_left = 64 * 1024, packed_right = 160 * 1024;

  std::span<T> left() { return workspace_.span().first(packed_left); }
  std::span<T> right() { return workspace_.span().subspan(packed_left); }

 private:
  buffer workspace_{packed_left + packed_right};
};

}  // namespace edl
