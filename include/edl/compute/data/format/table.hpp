// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

struct table_column {
  std::string name;
  example::kind kind = example::kind::none;  ///< none: determined by the values
  bool spelled = false;                      ///< its numbers are texts: one is too large for an integer
  bool says_nothing = false;                 ///< texts, because all of its cells may mean a missing number

  friend bool operator==(table_column const&, table_column const&) = default;
};

/// A file whose columns have one kind in all of its records, determined by all of their values.
class table : public source {
 public:
  virtual std::vector<table_column> const& columns() const = 0;

  std::vector<std::string> features() const override;

  /// Sets the kinds of columns, each at least as wide as its own. Call before readers are opened.
  virtual void agree(std::vector<table_column> const& with) = 0;
};

/// The common kind of a column with two kinds: whole numbers are numbers, and anything is a text.
constexpr example::kind wider(example::kind a, example::kind b) {
  using enum example::kind;
  if (a == none || b == none) return a == none ? b : a;
  if (a == strings || b == strings) return strings;
  return a == floats || b == floats ? floats : integers;
}

namespace detail {
inline constexpr std::size_t table_notes = 20;  // of a file

/// The note about a column that is spelled.
std::string spelled_note(std::string const& path, std::uint64_t line, std::string_view number,
                         std::string_view column);

/// A name with bytes beyond ASCII, and blanks at the ends, escaped as in C: "gro\xcc\x88e", "age\x20".
std::string spelled_out(std::string_view name);

/// If one of `names` only looks like `wanted` (other encodings of accents, other blanks or case), a clause
/// that shows the difference: "; 'age\x20' looks like it and is another name". Otherwise empty.
std::string look_alike(std::string_view wanted, std::vector<std::string_view> const& names);
}  // namespace detail

/// Gives the columns of several files one kind each, as if they were one file.
void agree(std::span<table* const> files);

namespace detail {
class csv_reader;
}

struct csv_options {
  char delimiter = ',';
  std::vector<table_column> columns;  ///< of a file without a header row
  std::string_view blanks = " \t";    ///< characters to strip from both ends of a text
  char comment = 0;                   ///< rows that begin with it are skipped; 0: none
  missing_words missing = {};         ///< texts that count as an empty cell
  std::shared_ptr<std::vector<table_column> const> known = {};  ///< of another file: a text there is one here
};

/// Comma-separated values (RFC 4180: quoted fields may hold delimiters, quotes doubled, and line ends). The
/// header row names the features, unless the options do; empty lines are skipped. A column of whole numbers
/// gives integers, one of numbers floats, any other bytes. A cell also keeps the kind of its own text, so
/// that a bad cell affects only its record. If a field of a column of numbers is empty, or one of the
/// `missing_words`, the record lacks the feature; a few texts among many numbers do not change that. The same
/// holds if no row of the file has a value. A column of only such words contains texts, unless another file
/// has numbers in it (`known`, `agree`). Scans the whole file once, for the rows' offsets and the columns'
/// kinds. A file is one shard. It may be compressed (compute/data/format/text_file.hpp).
class csv_source : public table {
 public:
  using column = table_column;

  /// Throws data_error, with file and line, if there is no header or it has more than 16,384 columns, two
  /// columns have one name, a quote is never closed or a row is longer than 16 MiB. If a whole number of a
  /// column is too large for 64 bits, the column is a text. A row with too few or too many fields is an error
  /// when it is read.
  explicit csv_source(std::string const& path, csv_options options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t record) const override {
    return line_of(record);
  }
  /// A column without any value has no kind.
  std::vector<column> const& columns() const override { return columns_; }

  /// Throws data_error if the file lacks one of them.
  void agree(std::vector<column> const& with) override;

  /// Names the cells that make columns of numbers texts, and lines that are not UTF-8.
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
  std::vector<bool> have_numbers_;    // of the columns: in this file
  std::vector<bool> nearly_numbers_;  // texts because of a few cells only
  std::vector<std::uint64_t> rows_;   // offset of each, then the file's size
  std::vector<std::uint64_t> lines_;  // of some rows
  std::vector<shard> shards_;
  std::vector<std::string> notes_;
  std::string missing_note_;
};

/// Rows of ids with weights, in the format of libFM and LIBSVM: `1 451:1 4149:0.5`, a label and id:weight
/// pairs, separated by blanks. Empty lines, and those that begin with `#`, are skipped. Features: `label`
/// (one float), `ids` (integers, at least 0), `weights` (as many floats). The file is read into memory.
class libfm_source : public source {
 public:
  /// Throws data_error if there is no row, or the file is larger than 1 GiB. An invalid row is an error when
  /// it is read, with file, line and column.
  explicit libfm_source(std::string const& path);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t record) const override {
    return rows_.at(std::size_t(record)).line;
  }

 private:
  struct row {
    std::size_t first, size, line;
  };
  friend class libfm_reader;

  std::string path_, text_;
  std::vector<row> rows_;
  std::vector<shard> shards_;
};

/// UCI's census income ("Adult", doi 10.24432/C5XW20): 14 columns and `label`, without a header row. Texts
/// begin with a blank; labels in adult.test end with a point, and its first row is a comment.
csv_options census_options();

/// The click logs of Criteo's display advertising challenge (2014): `label`, 13 counts `i1` to `i13`, and 26
/// texts `c1` to `c26`, with tabs. A count may be missing.
csv_options criteo_options();

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/table.ipp"
#endif
