// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// Of a page, unpacked.
inline constexpr std::uint32_t parquet_page_limit = 256u << 20, parquet_values_limit = 1u << 24;

/// Of a decimal, by which it has up to 76 digits.
inline constexpr std::size_t parquet_decimal_bytes = 32;

/// How values are stored. The numbers are those of parquet.thrift (apache/parquet-format 2.11).
enum class parquet_type : std::uint8_t { boolean, int32, int64, int96, float32, float64, bytes, fixed_bytes };
enum class parquet_codec : std::uint8_t { none, snappy, gzip, lzo, brotli, lz4, zstd, lz4_raw };
enum class parquet_encoding : std::uint8_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9
};

/// What a stored value says, as far as it is read in a way of its own.
enum class parquet_meaning : std::uint8_t {
  as_stored,
  is_unsigned,
  decimal,
  date,
  time,
  timestamp,
  float16,
  uuid
};

/// A column whose values are read: one value a row, or a list of them.
struct parquet_column {
  std::string name;      ///< with '.' between an object's name and its member's
  std::size_t leaf = 0;  ///< its place among all columns of the file
  parquet_type type = parquet_type::boolean;
  parquet_meaning meaning = parquet_meaning::as_stored;
  std::uint32_t width = 0;            ///< of fixed_bytes
  int digits = 0;                     ///< behind the point: of a decimal, of the seconds
  bool utc = false;                   ///< the time is that of Greenwich
  std::uint32_t most_definition = 0;  ///< the level of a value that is there
  std::uint32_t list_definition = 0;  ///< the level of a list's element, also a null; 0: it is no list

  friend bool operator==(parquet_column const&, parquet_column const&) = default;
};

/// A column of one row group.
struct parquet_chunk {
  std::uint64_t begin = 0, end = 0;  ///< in the file
  std::uint64_t values = 0;          ///< with nulls
  parquet_codec codec = parquet_codec::none;
};

struct parquet_metadata {
  struct row_group {
    std::uint64_t first = 0, rows = 0;
    std::vector<parquet_chunk> chunks;  ///< of all columns of the file
  };
  std::vector<parquet_column> columns;
  std::vector<row_group> groups;
  std::uint64_t rows = 0;
  std::vector<std::string> notes;  ///< of the columns that are left out, one line each
};

/// Reads what stands at the file's end: the columns, and where their pages lie. A data_error names the file
/// where it is encrypted, cut off or malformed.
parquet_metadata read_parquet_metadata(input_file const& file);

/// The same of the bytes of the metadata; columns lie in [4, end).
parquet_metadata parse_parquet_metadata(std::string_view bytes, std::uint64_t end);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/parquet_metadata.ipp"
#endif
