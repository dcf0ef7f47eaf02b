// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/parquet_metadata.hpp"
#include "edl/compute/data/format/parquet_page.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// The kind of a column's values in a record, as far as its type determines it.
example::kind kind_of(parquet_column const& column);

/// Whether values may be whole numbers that do not fit signed 64 bits.
bool may_be_too_large(parquet_column const& column);

/// A value of a column of integers, or of whole numbers; empty if it does not fit.
std::optional<std::int64_t> integer_at(parquet_column const& column, parquet_values const& values,
                                       std::size_t i);

/// A value of a column of integers or floats.
double number_at(parquet_column const& column, parquet_values const& values, std::size_t i);

/// A value as a text, which may be stored in `scratch`. Numbers have the shortest form that reads back as the
/// same number.
std::string_view text_at(parquet_column const& column, parquet_values const& values, std::size_t i,
                         std::string& scratch);

}  // namespace edl::data::detail

namespace edl::data {
namespace detail {
class parquet_reader;
}

/// Parquet (apache/parquet-format 2.11), read in place. A column gives the same as in a CSV file, determined
/// by its type instead of its cells:
/// - whole numbers and booleans (1 and 0) give integers, as do decimals without a fraction. One of them that
/// is
///   too large for 64 bits with a sign makes texts of the column;
/// - fractions, also float16 and decimals, give floats;
/// - all others give byte strings: texts as they are, a date `2026-11-28`, a timestamp
///   `2026-11-28 15:04:05.25`, with a `Z` where it is one of Greenwich, a time `15:04:05`, a UUID.
///
/// If a cell is null, the record lacks the feature, or has an empty text in a column of texts, as in CSV. A
/// list of values gives a list; a null list is missing, and a null in a list damages its record. Member `b`
/// of an object `a` is `a.b`. Lists of lists or objects, maps and intervals are left out, and a note names
/// them.
///
/// Opening reads only the metadata at the file's end, and columns of numbers that may be too large. A reader
/// unpacks only the pages with the rows that it reads, and verifies their checksums if there are any.
class parquet_source : public table {
 public:
  /// Throws data_error if the file is not a Parquet file, is encrypted, has two columns with one name, or has
  /// no readable column. Damaged pages are an error when their rows are read.
  explicit parquet_source(std::string const& path, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::vector<table_column> const& columns() const override { return columns_; }
  std::span<std::string const> notes() const override { return notes_; }

  /// Throws data_error if the file lacks one of them.
  void agree(std::vector<table_column> const& with) override;

 private:
  friend class detail::parquet_reader;
  void find_large_numbers();

  detail::input_file file_;
  detail::parquet_metadata metadata_;
  std::vector<table_column> columns_;  // of the metadata's
  missing_words missing_;
  std::size_t cache_bytes_;
  std::vector<shard> shards_;
  std::vector<std::string> notes_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/parquet.ipp"
#endif
