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

/// Checksums of a range's arrays, block by block, as of their last writing: detects memory that changes by
/// itself, except with probability 2^-64. Arrays may be shorter than the range: they then cover its first
/// elements.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class memory_sums {
 public:
  static constexpr std::size_t block = 4096;  ///< elements; the blocks of a few arrays fit into a cache

  /// For arrays of up to this many elements.
  explicit memory_sums(std::size_t elements) : sums_((elements + block - 1) / block) {}

  /// Updates the checksums of the blocks with these elements, after a write.
  void take(std::span<view<float> const> arrays, element_range of);

  /// A block that differs from what was written; empty: none does.
  std::optional<element_range> changed(std::span<view<float> const> arrays, element_range of) const;

 private:
  std::vector<std::uint64_t> sums_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/memory_sums.ipp"
#endif
