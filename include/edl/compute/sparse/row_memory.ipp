// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "edl/compute/sparse/row_memory.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::sparse {

EDL_INLINE row_memory::row_memory(std::size_t values)
    : row_bytes_((sizeof(row_header) + values * sizeof(float) + 15) / 16 * 16),
      regions_(std::make_unique<std::atomic<std::byte*>[]>(most_rows / rows_per_region)) {}

EDL_INLINE row_memory::~row_memory() {
  for (std::uint64_t i = 0; i * rows_per_region < used_; ++i)
    ::munmap(regions_[i].load(), row_bytes_ * rows_per_region);
}

EDL_INLINE std::uint32_t row_memory::take() {
  std::lock_guard const lock(mutex_);
  if (!free_.empty()) {
    std::uint32_t const first = free_.back();
    free_.pop_back();
    return first;
  }
  auto const refuse = [&](std::string const& why) {
    return error(
        fmt::format("no room for more rows of a table; it has {} of {} bytes: {}", used_, row_bytes_, why));
  };
  if (used_ == most_rows) throw refuse("more have no numbers");
  if (used_ % rows_per_region == 0) {
    std::size_t const bytes = row_bytes_ * rows_per_region;
    void* const region =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) throw refuse(std::strerror(errno));
    ::madvise(region, bytes, MADV_HUGEPAGE);  // if the system refuses, pages stay small
    regions_[used_ / rows_per_region].store(static_cast<std::byte*>(region), std::memory_order_release);
  }
  auto const first = std::uint32_t(used_);
  used_ += rows_per_piece;
  invariant(used_ <= most_rows, "each row has a number");
  return first;
}

EDL_INLINE void row_memory::give_back(std::uint32_t first) {
  std::lock_guard const lock(mutex_);
  invariant(first % rows_per_piece == 0 && first < used_, "only a piece that was taken comes back");
  free_.push_back(first);
  invariant(free_.size() * rows_per_piece <= used_, "no piece comes back twice");
}

EDL_INLINE std::size_t row_memory::bytes() const {
  std::lock_guard const lock(mutex_);
  return std::size_t(used_) * row_bytes_;
}

}  // namespace edl::sparse
