// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "edl/compute/sparse/hash.hpp"
#include "edl/compute/sparse/row_memory.hpp"

namespace edl::sparse {

/// The rows of the ids of one hash slot. No two ids share a row, whatever their hashes. The index is an
/// open-addressing table of cache lines. It grows by a quarter, which takes about 0.1 ms with 10,000 rows.
/// Thread safety: one caller at a time; slots that share a memory are independent.
class hash_slot {
 public:
  std::uint32_t size() const { return size_; }
  std::size_t index_bytes() const {
    return lines_.size() * sizeof(line) + pieces_.size() * sizeof(std::uint32_t);
  }

  void prefetch_index(id_hash h) const {
    if (!lines_.empty()) __builtin_prefetch(&lines_[h.place(lines())]);
  }

  /// The row that is probably the id's, without reading that row; or none.
  row guess(id_hash h, row_memory const& rows) const;
  /// The id's row, or none.
  row find(std::uint64_t id, id_hash h, row_memory const& rows) const;
  /// Creates a row for an id that has none; all but its id is zero. Throws edl::error when memory runs out.
  row insert(std::uint64_t id, id_hash h, row_memory& rows);
  /// Removes the row of an id, if there is one, and moves the last row into its place.
  bool remove(std::uint64_t id, id_hash h, row_memory& rows);

  /// Calls visit(row) for each row.
  template <class Visit>
  void for_each(row_memory const& rows, Visit&& visit) const {
    for (std::uint32_t i = 0; i < size_; ++i) visit(rows.at(number(i)));
  }

 private:
  /// Entries and their tags; a tag of 0 marks a free entry.
  struct alignas(64) line {
    static constexpr std::uint32_t entries = 12;
    std::array<std::uint8_t, 16> tags{};  // the last four stay 0
    std::array<std::uint32_t, entries> numbers{};
  };
  static_assert(sizeof(line) == 64);

  struct place {
    line* at = nullptr;
    std::uint32_t entry = 0;
  };

  std::uint32_t lines() const { return std::uint32_t(lines_.size()); }
  std::uint32_t number(std::uint32_t i) const {
    return pieces_[i / row_memory::rows_per_piece] + i % row_memory::rows_per_piece;
  }
  /// Calls visit(line, entry) for the entries with a tag until it returns true, or until no more can exist.
  template <class Visit>
  void probe(id_hash h, Visit&& visit) const;
  place find_place(std::uint64_t id, id_hash h, row_memory const& rows) const;
  void enter(id_hash h, std::uint32_t number);
  void grow(row_memory const& rows);

  std::vector<line> lines_;
  std::vector<std::uint32_t> pieces_;  // of the rows: the first number of each
  std::uint32_t size_ = 0;
};

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/hash_slot.ipp"
#endif
