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

/// What the values of a column are to a record, as far as its type tells.
example::kind kind_of(parquet_column const& column);

/// Whether values may be whole numbers that do not fit 64 bits with a sign.
bool may_be_too_large(parquet_column const& column);

/// A value of a column of integers, or of whole numbers; nothing where it does not fit.
std::optional<std::int64_t> integer_at(parquet_column const& column, parquet_values const& values,
                                       std::size_t i);

/// A value of a column of integers or floats.
double number_at(parquet_column const& column, parquet_values const& values, std::size_t i);

/// A value as a text, which may stand in `scratch`. Numbers are as short as they can be and still read as the
/// same ones.
std::string_view text_at(parquet_column const& column, parquet_values const& values, std::size_t i,
                         std::string& scratch);

}  // namespace edl::data::detail

namespace edl::data {
namespace detail {
class parquet_reader;
}

/// Parquet (apache/parquet-format 2.11), read where it lies. A column gives what the same one of a CSV file
/// does, by its type instead of its cells:
/// - whole numbers and booleans (1 and 0) give integers, as do decimals without a fraction. One of them that
/// is
///   too large for 64 bits with a sign makes texts of the column;
/// - fractions, also float16 and decimals, give floats;
/// - all others give byte strings: texts as they are, a date `2026-11-28`, a timestamp
///   `2026-11-28 15:04:05.25`, with a `Z` where it is one of Greenwich, a time `15:04:05`, a UUID.
///
/// Where a cell is null, the record lacks the feature, or has an empty text in a column of texts, as in CSV.
/// A list of values gives a list; a null list is lacking, and a null in a list damages its record. What
/// stands in an object `a` by the name `b` is `a.b`. Lists of lists or objects, maps and intervals are left
/// out, and a note names them.
///
/// Opening reads the metadata at the file's end alone, and columns of numbers that may be too large. A reader
/// unpacks the pages that hold the rows it reads, and compares their checksums where there are any.
class parquet_source : public table {
 public:
  /// A data_error where the file is no Parquet file, is encrypted, or has two columns of one name, or none
  /// that is read. Damaged pages are an error when their rows are read.
  explicit parquet_source(std::string const& path, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::vector<table_column> const& columns() const override { return columns_; }
  std::span<std::string const> notes() const override { return notes_; }

  /// A data_error if the file lacks one of them.
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
