// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/parquet_metadata.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// The header of a page, which describes the following bytes.
struct parquet_page_header {
  enum class kind : std::uint8_t { data, index, dictionary, data_v2 };
  kind type = kind::index;
  std::size_t header = 0;  ///< its own bytes
  std::uint32_t size = 0, unpacked = 0;
  bool has_checksum = false, packed = true;
  std::uint32_t checksum = 0;
  std::uint32_t values = 0, rows = 0;                      ///< rows: only in version 2
  std::uint32_t definition_size = 0, repetition_size = 0;  ///< of version 2
  parquet_encoding encoding = parquet_encoding::plain;
  parquet_encoding definition = parquet_encoding::rle, repetition = parquet_encoding::rle;
};

/// Parses bytes that begin with a header. Throws data_error if they are invalid, or end within it.
parquet_page_header parse_parquet_page_header(std::string_view bytes);

/// Stored values of a column, in the pool of their type.
struct parquet_values {
  std::vector<std::int64_t> integers;  ///< of boolean, int32, int64
  std::vector<double> floats;          ///< of float32, float64
  std::string bytes;                   ///< of all other types, one value after the other
  std::vector<std::size_t> ends;

  std::string_view bytes_at(std::size_t i) const {
    std::size_t const begin = i > 0 ? ends[i - 1] : 0;
    return std::string_view(bytes).substr(begin, ends[i] - begin);
  }
  std::size_t size() const { return integers.size() + floats.size() + ends.size(); }
  std::size_t memory() const { return 8 * size() + bytes.size(); }
};

/// The contents of a page. A row of a list may begin in one page and continue in the next.
struct parquet_page {
  static constexpr std::uint32_t null = std::uint32_t(-1), no_element = null - 1, no_list = null - 2;

  std::shared_ptr<parquet_values const> values;  ///< its own, or the dictionary's
  std::vector<std::uint32_t> indices;            ///< of values in the dictionary; empty: they are in order
  std::vector<std::uint32_t> slots;              ///< which value each is, or none; empty: they come in order
  std::vector<std::uint32_t> rows;               ///< of lists: the first slot of each row that begins here
  std::size_t count = 0;                         ///< slots

  /// The number of the value in a slot; from `no_list` on: there is none.
  std::uint32_t value(std::size_t slot) const {
    std::uint32_t const n = slots.empty() ? std::uint32_t(slot) : slots[slot];
    return n >= no_list || indices.empty() ? n : indices[n];
  }
  std::size_t memory() const {
    return 4 * (indices.size() + slots.size() + rows.size()) +
           (indices.empty() && values ? values->memory() : 0);
  }
};

/// Decompresses and reads a data page. Throws data_error for any inconsistency. `dictionary` may be null.
parquet_page read_parquet_page(parquet_column const& column, parquet_codec codec,
                               parquet_page_header const& header, std::string_view bytes,
                               std::shared_ptr<parquet_values const> const& dictionary);

/// The same for a dictionary page.
parquet_values read_parquet_dictionary(parquet_column const& column, parquet_codec codec,
                                       parquet_page_header const& header, std::string_view bytes);

/// The number of slots of a list's page that belong to a row of the previous page, and of rows that begin in
/// it.
struct parquet_rows {
  std::size_t continued = 0, begun = 0;
};
parquet_rows count_parquet_rows(parquet_column const& column, parquet_codec codec,
                                parquet_page_header const& header, std::string_view bytes);

/// Appends `count` numbers of `width` bits, 0 to 32, from the hybrid of run-length and bit-packed encoding.
void read_parquet_runs(byte_cursor& from, unsigned width, std::size_t count,
                       std::vector<std::uint32_t>& into);

/// Appends numbers in DELTA_BINARY_PACKED: `count` of them, no more and no less.
void read_parquet_deltas(byte_cursor& from, std::size_t count, std::vector<std::int64_t>& into);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/parquet_page.ipp"
#endif
