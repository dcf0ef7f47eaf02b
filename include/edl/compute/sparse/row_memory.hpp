// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace edl::sparse {

/// The header before a row's values.
struct row_header {
  std::uint64_t id;
  std::uint32_t last_use;  ///< the `clock` of the row's last push
  std::uint32_t uses;      ///< number of pushes, saturating
};
static_assert(sizeof(row_header) == 16);

/// A row: its header, then its weights, then the optimiser's slots.
struct row {
  row_header* header = nullptr;

  explicit operator bool() const { return header != nullptr; }
  float* values() const { return reinterpret_cast<float*>(header + 1); }
};

/// Memory for numbered rows, in regions that the system may back by huge pages: rows are accessed at random,
/// and with small pages each access would miss the TLB. Rows never move. Thread safety: safe; a row's content
/// belongs to its holder.
class row_memory {
 public:
  static constexpr std::uint32_t rows_per_piece = 8, rows_per_region = 1u << 18;
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 32;

  /// `values`: floats per row.
  explicit row_memory(std::size_t values);
  ~row_memory();
  row_memory(row_memory const&) = delete;
  row_memory& operator=(row_memory const&) = delete;

  std::size_t row_bytes() const { return row_bytes_; }

  /// Allocates eight consecutive rows and returns the first one's number. Throws edl::error when memory runs
  /// out.
  std::uint32_t take();
  void give_back(std::uint32_t first);

  /// A row of an allocated piece.
  row at(std::uint32_t number) const {
    std::byte* const region = regions_[number / rows_per_region].load(std::memory_order_acquire);
    return {reinterpret_cast<row_header*>(region + number % rows_per_region * row_bytes_)};
  }

  /// Bytes of all pieces ever allocated.
  std::size_t bytes() const;

 private:
  std::size_t const row_bytes_;
  std::unique_ptr<std::atomic<std::byte*>[]> const regions_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint64_t used_ = 0;  // rows
};

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/row_memory.ipp"
#endif
