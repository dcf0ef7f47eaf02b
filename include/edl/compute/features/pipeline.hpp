// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "edl/compute/features/hashing.hpp"
#include "edl/compute/features/numbers.hpp"
#include "edl/compute/features/pieces.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/compute/features/string_lookup.hpp"

namespace edl::features {

/// One value of a record.
using cell = std::variant<std::string_view, std::int64_t, float>;

/// The sizes of a model's inputs: numbers, ids and the vocabulary of their table.
struct pipeline_room {
  std::size_t numbers = 0, ids = 0;
  std::int64_t vocabulary = 0;
};

/// The conversions of a table's columns as a text, which may change without a new build. Each line has
/// columns and steps, separated by `|`:
///
///     # a comment
///     age                   | normalization subtract=38.6 divide=13.6
///     hours                 | discretization boundaries=20,35,40,45,60
///     zip                   | to_number otherwise=0
///     education             | string_lookup words=Bachelors,HS-grad,Masters unknown=1
///     education, occupation | crossing buckets=2000
///     tags                  | pieces separator=; | hashing buckets=1000
///
/// Steps and options are those of `edl::features`, and give the same results on the same inputs. `statistics`
/// supplies what a `normalization`, a `discretization` or a `string_lookup` omits: mean and deviation,
/// boundaries, vocabulary. `to_number` may precede another step, to set the value of an empty or missing
/// cell.
///
/// `normalization` and `to_number` make numbers, all others ids. The ids of all lines form one table, in the
/// order of the lines. `pieces` makes a list of ids from a text. A network's inputs are floats, so the ids of
/// lines without `pieces` must be below 2^24.
///
/// Thread safety: const, safe.
class pipeline {
 public:
  /// `where` appears in errors; if it is a path, vocabularies' files are relative to it. Throws usage_error,
  /// which names the line and the column, for an invalid text.
  pipeline(std::string_view text, std::string const& where);
  pipeline(std::string_view text, std::string const& where, statistics::environment const& from);

  /// Throws edl::error for a file that cannot be read.
  static pipeline from_file(std::string const& path);

  /// The pipeline in the file that the environment variable EDL_COLUMNS names, or `text` if it is not set.
  /// Throws usage_error if it does not fit the model: with another number of numbers or ids, or with more ids
  /// than the vocabulary.
  static pipeline chosen(std::string_view text, pipeline_room const& room);
  void check(pipeline_room const& room) const;

  std::size_t numbers() const { return numbers_; }  ///< that `write_numbers` writes
  std::size_t ids() const { return ids_; }          ///< that `write_ids` writes
  std::int64_t size() const { return size_; }       ///< all ids are below

  /// Writes the numbers of a record to `row(0)`, `row(1)`, …, in the order of their lines. Like the two
  /// below, it throws data_error for a value that a line cannot read, and for a missing column.
  template <class Record, class Row>
  void write_numbers(Record const& record, Row&& row) const {
    std::size_t i = 0;
    for (line const& l : lines_)
      if (l.makes == output::number) row(i++) = number_of(l, read(record, l, 0));
  }

  /// Writes the ids of all lines without `pieces` likewise; −1 if a line gives none.
  template <class Record, class Row>
  void write_ids(Record const& record, Row&& row) const {
    std::size_t i = 0;
    for (line const& l : lines_) {
      if (l.makes != output::id) continue;
      std::vector<cell> cells;
      for (std::size_t c = 0; c < l.columns.size(); ++c) cells.push_back(read(record, l, c));
      row(i++) = float(id_of(l, cells));
    }
  }

  /// Adds the ids of all lines with `pieces` to a list (`edl::id_list`); skips −1.
  template <class Record, class List>
  void add_ids(Record const& record, List&& list) const {
    for (line const& l : lines_) {
      if (l.makes != output::list || record.count(l.columns[0]) == 0) continue;
      for (std::string_view const piece :
           features::pieces(record.bytes(l.columns[0]), l.separator, l.ignored))
        if (std::int64_t const id = id_of(l, {piece}); id >= 0) list.add(id);
    }
  }

 private:
  enum class output { number, id, list };
  struct as_it_is {};
  struct line {
    std::size_t number = 0;
    std::vector<std::string> columns;
    output makes = output::id;
    std::variant<as_it_is, normalization, loaded_discretization, log_round, round_identity, hashing, crossing,
                 loaded_lookup>
        step;
    std::optional<float> otherwise;  // of an empty or missing value
    char separator = ',';
    std::string ignored;
    std::int64_t first = 0;  // of its ids
  };
  struct reader;

  template <class Record>
  static cell read(Record const& record, line const& l, std::size_t column) {
    std::string const& name = l.columns[column];
    if (l.otherwise && record.count(name) == 0) return *l.otherwise;
    for (std::size_t f = 0; f < record.size(); ++f) {
      if (record.name(f) != name) continue;
      if (record.kind_of(f) == Record::kind::strings) return record.bytes(name);
      if (record.kind_of(f) == Record::kind::integers) return record.integer(name);
    }
    return record.floating(name);
  }

  float number_of(line const& l, cell const& of) const;
  std::int64_t id_of(line const& l, std::vector<cell> const& of) const;
  float to_float(line const& l, cell const& of) const;

  std::string where_;
  std::vector<line> lines_;
  std::size_t numbers_ = 0, ids_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/pipeline.ipp"
#endif
