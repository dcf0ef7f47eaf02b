// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {
class csv_reader;
}

struct csv_options {
  char delimiter = ',';
  std::vector<table_column> columns;  ///< of a file without a header row
  std::string_view blanks;            ///< characters that do not count at both ends of a text
  char comment = 0;                   ///< a row that begins with it is no record; 0: every row is one
  missing_words missing = {};         ///< texts that count as an empty cell
  std::shared_ptr<std::vector<table_column> const> known = {};  ///< of another file: a text there is one here
};

/// Comma-separated values (RFC 4180: quoted fields may hold delimiters, quotes doubled, and line ends). The
/// header row names the features and is no record, unless the options name them; empty lines are none either.
/// A column whose every value is a whole number gives integers, one of numbers floats, any other bytes. A
/// cell is also what its own text says, so that one bad cell is the fault of its record alone. Where a field
/// of a column of numbers is empty, or says so (`missing_words`), the record lacks the feature. A few texts
/// among many numbers change nothing in that. It does so, too, where no row of the file has a value. A column
/// of nothing but such words holds texts, unless another file knows it as numbers (`known`, `agree`). The
/// whole file is scanned once, for the rows' offsets and the columns' kinds. A file is one shard. It may be
/// packed (compute/data/format/text_file.hpp).
class csv_source : public table {
 public:
  using column = table_column;

  /// A data_error, with file and line, if there is no header or it has more than 16,384 columns. The same
  /// holds if two columns have one name, a quote is never closed or a row is longer than 16 MiB. A column of
  /// whole numbers of which one is too large for 64 bits is a text. A row with too few or too many fields is
  /// an error when it is read.
  explicit csv_source(std::string const& path, csv_options options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t record) const override {
    return line_of(record);
  }
  /// A column without any value has no kind.
  std::vector<column> const& columns() const override { return columns_; }

  /// A data_error if the file lacks one of them.
  void agree(std::vector<column> const& with) override;

  /// Names the cells because of which columns that hold numbers otherwise are texts, and lines that are no
  /// UTF-8.
  std::span<std::string const> notes() const override { return notes_; }
  std::string missing_note() const override { return missing_note_; }

 private:
  friend class detail::csv_reader;
  void scan();
  std::uint64_t line_of(std::uint64_t row) const;
  bool is_word_for_empty(std::string_view text) const;

  detail::text_file file_;
  csv_options options_;
  std::vector<column> columns_;
  std::vector<bool> have_numbers_;    // of the columns: here, whatever other files have
  std::vector<bool> nearly_numbers_;  // texts because of a few cells only
  std::vector<std::uint64_t> rows_;   // offset of each, then the file's size
  std::vector<std::uint64_t> lines_;  // of some rows
  std::vector<shard> shards_;
  std::vector<std::string> notes_;
  std::string missing_note_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/csv.ipp"
#endif
