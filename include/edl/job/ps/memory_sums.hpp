// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl::ps {

/// What arrays of one range came to when they were last written, block by block: memory that changes by
/// itself is found, but by a chance of 2^-64. Arrays may be shorter than the range: they are of its first
/// elements.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class memory_sums {
 public:
  static constexpr std::size_t block = 4096;  ///< elements: of a few arrays, they stay in a cache

  /// Of arrays of up to so many elements.
  explicit memory_sums(std::size_t elements) : sums_((elements + block - 1) / block) {}

  /// The blocks that these elements lie in have been written.
  void take(std::span<view<float> const> arrays, element_range of);

  /// A block of them that is not as it was written; nothing: there is none.
  std::optional<element_range> changed(std::span<view<float> const> arrays, element_range of) const;

 private:
  std::vector<std::uint64_t> sums_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/memory_sums.ipp"
#endif
