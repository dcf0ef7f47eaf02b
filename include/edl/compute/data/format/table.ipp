// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::data {

EDL_INLINE std::string detail::spelled_note(std::string const& path, std::uint64_t line,
                                            std::string_view number, std::string_view column) {
  return fmt::format(
      "{}:{}: {} does not fit 64 bits with a sign, and makes column '{}' of whole numbers a text; "
      "where floats are meant, write numbers with a point",
      path, line, edl::printable(number, 64), edl::printable(column, 64));
}

namespace detail {

/// A simplified form of a name for comparison: no diacritics, lower case, no blanks.
inline std::string looks_of(std::string_view name) {
  // U+00C0 to U+017F without diacritics, one letter each.
  constexpr std::string_view bare =
      "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo/ouuuuyty"
      "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllll"
      "nnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    auto const byte = static_cast<unsigned char>(name[i]);
    std::size_t const length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    std::string_view const one = name.substr(i, length);
    i += length;
    if (length == 1) {
      if (byte > 0x20) out += byte >= 'A' && byte <= 'Z' ? char(byte + 32) : char(byte);
    } else if (length == 2 && one.size() == 2) {
      unsigned const code = (byte & 0x1Fu) << 6 | (static_cast<unsigned char>(one[1]) & 0x3Fu);
      bool const mark = code >= 0x300 && code < 0x370, blank = code == 0xA0 || code == 0xAD;
      if (code >= 0xC0 && code < 0xC0 + bare.size())
        out += bare[code - 0xC0];
      else if (!mark && !blank)
        out += one;
    } else if (one != "\xE2\x80\x8B" && one != "\xEF\xBB\xBF" && one != "\xE2\x80\xAF") {
      out += one;  // all but blanks of no width or a narrow one
    }
  }
  return out;
}

}  // namespace detail

EDL_INLINE std::string detail::spelled_out(std::string_view name) {
  std::string out;
  auto const first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
  for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 64); ++i) {
    auto const byte = static_cast<unsigned char>(name[i]);
    bool const plain = byte >= 0x20 && byte < 0x7F && i >= first && i <= last;
    out += plain ? std::string(1, name[i]) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

EDL_INLINE std::string detail::look_alike(std::string_view wanted,
                                          std::vector<std::string_view> const& names) {
  std::string const looks = looks_of(wanted);
  for (std::string_view const name : names)
    if (name != wanted && looks_of(name) == looks)
      return fmt::format("; '{}' looks like '{}' and is another name", spelled_out(name),
                         spelled_out(wanted));
  return {};
}

EDL_INLINE std::vector<std::string> table::features() const {
  std::vector<std::string> names;
  for (table_column const& c : columns()) names.push_back(c.name);
  return names;
}

EDL_INLINE void agree(std::span<table* const> files) {
  std::vector<table_column> all;
  std::unordered_map<std::string, std::size_t> places;
  for (table const* const file : files)
    for (auto const& column : file->columns()) {
      auto const [known, fresh] = places.try_emplace(column.name, all.size());
      if (fresh) all.push_back({column.name});
      table_column& one = all[known->second];
      one.kind = wider(one.kind, column.says_nothing ? example::kind::none : column.kind);
      one.spelled |= column.spelled;
      one.says_nothing |= column.says_nothing;
    }
  for (table_column& one : all)
    if (one.says_nothing && one.kind == example::kind::none) one.kind = example::kind::strings;
  for (table* const file : files) file->agree(all);
}

namespace detail {

inline constexpr std::size_t csv_row_limit = 16u << 20, csv_block = 1u << 20, csv_columns = 16'384;
inline constexpr std::size_t csv_lines_kept = 256;  // the line of every so many rows is stored

/// The parser's state after a character, by RFC 4180; a quote in the middle of a bare field is an ordinary
/// character.
enum class csv_state { begin, bare, quoted, quote };

constexpr csv_state csv_next(csv_state s, char c, char delimiter) {
  if (s == csv_state::quoted) return c == '"' ? csv_state::quote : csv_state::quoted;
  if (c == delimiter || c == '\n') return csv_state::begin;
  if (c == '"' && s == csv_state::begin) return csv_state::quoted;
  if (c == '"' && s == csv_state::quote) return csv_state::quoted;
  return s == csv_state::quote ? csv_state::quote : csv_state::bare;
}

/// The fields of one row, unquoted. Reuses its storage.
class csv_fields {
 public:
  /// Splits the first row of `text`; false if text follows a closing quote.
  bool split(std::string_view text, char delimiter) {
    text_.clear();
    ends_.clear();
    csv_state state = csv_state::begin;
    for (std::size_t i = 0; i < text.size(); ++i) {
      char const c = text[i];
      auto const next = csv_next(state, c, delimiter);
      bool const line_end = c == '\n' || (c == '\r' && (i + 1 == text.size() || text[i + 1] == '\n'));
      if (state != csv_state::quoted && (c == delimiter || line_end)) {
        ends_.push_back(text_.size());
        if (line_end) return true;
      } else if (next == csv_state::bare || (state == csv_state::quoted && next == csv_state::quoted) ||
                 (state == csv_state::quote && next == csv_state::quoted)) {
        text_.push_back(c);
      } else if (state == csv_state::quote) {
        return false;
      }
      state = next;
    }
    ends_.push_back(text_.size());
    return state != csv_state::quoted;
  }

  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const {
    auto const begin = i ? ends_[i - 1] : 0;
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

/// The flag with which a word counts as missing, too.
inline std::string missing_with(missing_words const& others, std::string_view word) {
  return edl::shell_line(
      {fmt::format("--missing={},{}", others ? fmt::format("{}", fmt::join(*others, ",")) : "auto",
                   edl::printable(word, 64))});
}

/// Blanks that are trimmed from cells; line breaks stay.
inline constexpr std::string_view cell_blanks = " \t";

/// The kind of a column with only this value, which is not blank.
inline example::kind kind_of(std::string_view text) {
  if (number_from<std::int64_t>(text)) return example::kind::integers;
  return number_from<double>(text) ? example::kind::floats : example::kind::strings;
}

/// Statistics of a column's cells.
struct csv_cells {
  std::uint64_t missing = 0, missing_line = 0;  // cells with a word for "missing", and the first one's line
  std::string missing_word;
  std::uint64_t numbers = 0, texts = 0, line = 0;  // `line` is that of the first text
  std::string first;                               // text
  bool alike = true;                               // all texts are the first one
  std::uint64_t fractions = 0, long_line = 0;      // of the first whole number that is too large
  std::string too_long;

  /// Counts one more cell that is not empty, and returns the column's kind so far. `word`: the text may mean
  /// that a number is missing.
  example::kind add(example::kind so_far, std::string_view text, bool word, std::uint64_t at) {
    if (word) {
      if (missing++ == 0) missing_line = at, missing_word = text;
      return so_far;
    }
    auto const now = kind_of(text);
    if (now != example::kind::strings) {
      ++numbers;
      if (now == example::kind::floats) {
        if (text.find_first_not_of("-0123456789") != text.npos)
          ++fractions;
        else if (long_line == 0)
          long_line = at, too_long = edl::printable(text, 64);
      }
    } else if (texts++ == 0) {
      line = at;
      first = text;
    } else {
      alike = alike && text == first;
    }
    return wider(so_far, now);
  }

  /// So few texts among so many numbers are usually a mistake.
  bool nearly_numbers() const { return texts > 0 && numbers / 10 >= texts; }

  /// One text, several times among more numbers, is probably a word for a missing number.
  bool one_word() const { return alike && texts > 1 && numbers > texts; }
};

class csv_reader final : public reader {
 public:
  explicit csv_reader(csv_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& file = from_.file_;
    if (shard != 0 || record + 1 >= from_.rows_.size())
      throw data_error(
          fmt::format("{}: no row {}: the file has {}", file.path(), record, from_.shards_[0].records));
    auto const at = from_.rows_[std::size_t(record)];
    row_.resize(std::min<std::size_t>(from_.rows_[std::size_t(record) + 1] - at, csv_row_limit));
    file.read(at, row_.data(), row_.size());
    file.check_unchanged();
    auto const refuse = [&](std::string const& what) {
      return data_error(fmt::format("{}:{}: {}", file.path(), from_.line_of(record), what));
    };
    if (!fields_.split(row_, from_.options_.delimiter)) throw refuse("characters follow a closing quote");
    auto const& columns = from_.columns_;
    if (fields_.size() != columns.size())
      throw refuse(fmt::format("expected {}{}, found {}", counted(columns.size(), "field"),
                               from_.options_.columns.empty() ? " as in the header" : "", fields_.size()));
    example_builder build{into};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      auto const& [name, what, spelled, says_nothing] = columns[i];
      auto const text = trimmed(fields_[i], detail::cell_blanks);
      bool const empty = text.empty() || from_.is_word_for_empty(text);
      bool const missing = empty || (!from_.options_.missing && says_missing(text));
      if (what == example::kind::strings) {
        if (from_.nearly_numbers_[i] && missing) continue;
        build.bytes(name, empty && !text.empty() ? "" : trimmed(fields_[i], from_.options_.blanks));
        if (!from_.have_numbers_[i]) continue;
        if (auto const value = number_from<std::int64_t>(text)) build.also(*value);
        // If a number is too large for an integer, a float would be a different number.
        if (auto const value = spelled ? std::nullopt : number_from<double>(text)) build.also(float(*value));
      } else if (missing || what == example::kind::none) {
        continue;
      } else if (what == example::kind::integers) {
        auto const value = number_from<std::int64_t>(text);
        if (!value) throw refuse(no_number("a whole number", name, text));
        build.integer(name, *value);
      } else {
        auto const value = number_from<double>(text);
        if (!value) throw refuse(no_number("a number", name, text));
        build.floating(name, float(*value));
        if (auto const exact = number_from<std::int64_t>(text)) build.also(*exact);
      }
    }
  }

 private:
  /// The way out for a word is to count it as missing; a number that is no whole one is none.
  std::string no_number(char const* expected, std::string_view name, std::string_view text) const {
    std::string const found = fmt::format("expected {} in column '{}', found '{}'", expected,
                                          edl::printable(name, 64), edl::printable(text, 64));
    bool const word = kind_of(text) == example::kind::strings && text.find(',') == text.npos;
    return word ? fmt::format("{}: {} counts such cells as missing", found,
                              missing_with(from_.options_.missing, text))
                : found;
  }

  csv_source const& from_;
  std::string row_;
  csv_fields fields_;
};

}  // namespace detail

EDL_INLINE csv_source::csv_source(std::string const& path, csv_options options)
    : file_(path), options_(std::move(options)), columns_(options_.columns) {
  if (char const delimiter = options_.delimiter; delimiter == '"' || delimiter == '\n' || delimiter == '\r')
    throw usage_error(fmt::format("{}: a quote or a line end cannot be the delimiter", path));
  scan();
  shards_.push_back({path.substr(path.find_last_of('/') + 1), rows_.size() - 1});
}

EDL_INLINE void csv_source::scan() {
  detail::csv_fields fields;
  std::vector<detail::csv_cells> cells;
  std::string block, row;
  std::uint64_t begin = 0, line = 1;            // of the row
  std::uint64_t foreign = 0, foreign_line = 0;  // rows that are no UTF-8
  std::string foreign_row;
  auto const refuse = [&](std::string const& what) {
    return data_error(fmt::format("{}:{}: {}", file_.path(), line, what));
  };
  auto const finish_row = [&] {
    if (row.empty() || row == "\r") return;
    if (row.size() > detail::csv_row_limit)
      throw refuse(fmt::format("is longer than {} bytes", detail::csv_row_limit));
    if (options_.comment != 0 && row.front() == options_.comment) return;
    if (!is_utf8(row) && foreign++ == 0) foreign_line = line, foreign_row = row;
    bool const good = fields.split(row, options_.delimiter);
    if (columns_.empty()) {
      if (!good) throw refuse("characters follow a closing quote in the header");
      if (fields.size() > detail::csv_columns)
        throw refuse(fmt::format("the header has {} columns, at most {} are taken", fields.size(),
                                 detail::csv_columns));
      for (std::size_t i = 0; i < fields.size(); ++i) {
        std::string name{trimmed(fields[i], detail::cell_blanks)};
        if (name.find('\r') != name.npos && name.find('\n') == name.npos)
          throw refuse("lines end in a carriage return alone; end them in line feeds: tr '\\r' '\\n'");
        if (name.empty()) throw refuse(fmt::format("column {} has no name in the header", i + 1));
        for (auto const& earlier : columns_)
          if (earlier.name == name)
            throw refuse(fmt::format("two columns of the header have the name '{}', the second is column {}",
                                     edl::printable(name, 64), i + 1));
        columns_.push_back({std::move(name), example::kind::none});
      }
      if (auto const& name = columns_.front().name;
          columns_.size() == 1 && options_.delimiter == ',' && name.find_first_of(";\t") != name.npos)
        throw refuse(
            fmt::format("the header '{}' has no commas; separate fields by commas, or by tabs in a "
                        ".tsv file",
                        edl::printable(name, 64)));
      if (std::ranges::all_of(
              columns_, [](auto const& c) { return detail::kind_of(c.name) != example::kind::strings; }))
        notes_.push_back(
            fmt::format("{}:{}: the names of all columns are numbers; if this line is a record, write one of "
                        "names above it",
                        file_.path(), line));
      return;
    }
    if (rows_.size() % detail::csv_lines_kept == 0) lines_.push_back(line);
    rows_.push_back(begin);
    if (!good || fields.size() != columns_.size()) return;  // reported when the row is read
    cells.resize(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!options_.columns.empty() && options_.columns[i].kind != example::kind::none) continue;
      auto const text = trimmed(fields[i], detail::cell_blanks);
      if (text.empty() || is_word_for_empty(text)) continue;
      columns_[i].kind = cells[i].add(columns_[i].kind, text, !options_.missing && says_missing(text), line);
    }
  };

  auto state = detail::csv_state::begin;
  constexpr std::string_view mark = "\xEF\xBB\xBF";  // UTF-8's BOM, which some spreadsheets write
  if (file_.size() >= mark.size()) {
    block.resize(mark.size());
    file_.read(0, block.data(), block.size());
    if (block == mark) begin = mark.size();
  }
  for (std::uint64_t at = begin; at < file_.size();) {
    block.resize(std::min<std::uint64_t>(detail::csv_block, file_.size() - at));
    file_.read(at, block.data(), block.size());
    std::size_t copied = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      bool const ends = block[i] == '\n' && state != detail::csv_state::quoted;
      state = detail::csv_next(state, block[i], options_.delimiter);
      if (!ends) continue;
      row.append(block, copied, i - copied);
      copied = i + 1;
      finish_row();
      line += 1 + std::uint64_t(std::ranges::count(row, '\n'));
      row.clear();
      begin = at + copied;
    }
    row.append(block, copied, std::string::npos);
    if (row.size() > detail::csv_row_limit)
      throw refuse(fmt::format("is longer than {} bytes{}", detail::csv_row_limit,
                               state == detail::csv_state::quoted ? "; a quote is never closed" : ""));
    at += block.size();
  }
  if (state == detail::csv_state::quoted) throw refuse("a quote is never closed");
  finish_row();
  if (columns_.empty()) throw data_error(fmt::format("{}: has no header row", file_.path()));
  file_.check_unchanged();
  rows_.push_back(file_.size());
  if (foreign > 0) {
    auto const first = std::ranges::find_if(foreign_row, [](char c) { return (c & 0x80) != 0; });
    auto const from = std::size_t(std::max<std::ptrdiff_t>(0, first - foreign_row.begin() - 8));
    notes_.push_back(fmt::format(
        "{}:{}: '{}' is not UTF-8{}: its words differ from the same words in UTF-8; `iconv -f latin1 -t "
        "utf-8` converts a Latin-1 file",
        file_.path(), foreign_line, detail::spelled_out(std::string_view(foreign_row).substr(from, 24)),
        foreign > 1 ? fmt::format(" ({} such lines in all)", foreign) : ""));
  }
  auto const known = [&](std::string const& name) {
    if (!options_.known) return example::kind::none;
    auto const it = std::ranges::find(*options_.known, name, &column::name);
    return it == options_.known->end() ? example::kind::none : it->kind;
  };
  std::string note;
  std::size_t more = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto const& c = cells[i];
    if (c.missing == 0) continue;
    // As far as this file shows, a column with nothing but such words contains texts.
    bool const alone = c.numbers == 0 && c.texts == 0;
    auto const elsewhere = known(columns_[i].name);
    columns_[i].says_nothing = alone && elsewhere == example::kind::none;
    bool const number = alone ? elsewhere == example::kind::floats || elsewhere == example::kind::integers
                              : c.numbers > 0 && (c.texts == 0 || c.nearly_numbers());
    if (!number)
      columns_[i].kind = example::kind::strings;
    else if (!note.empty())
      ++more;
    else
      note = fmt::format("{}:{}: '{}' in column '{}' of numbers counts as missing, as do {} in all",
                         file_.path(), c.missing_line, c.missing_word, edl::printable(columns_[i].name, 64),
                         counted(c.missing, "such cell"));
  }
  if (!note.empty())
    missing_note_ = note + (more > 0 ? fmt::format(", and others in {}", counted(more, "more column")) : "") +
                    "; --missing lists the words that do";
  have_numbers_.resize(columns_.size());
  nearly_numbers_.resize(columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    have_numbers_[i] = cells[i].numbers > 0;
    nearly_numbers_[i] = cells[i].nearly_numbers();
  }
  // A float would be a different number, and a model that does not read the column is not affected.
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (auto const& c = cells[i];
        columns_[i].kind == example::kind::floats && c.long_line > 0 && c.fractions == 0) {
      columns_[i].kind = example::kind::strings;
      columns_[i].spelled = true;
      if (notes_.size() < detail::table_notes)
        notes_.push_back(detail::spelled_note(file_.path(), c.long_line, c.too_long, columns_[i].name));
    }
  for (std::size_t i = 0; i < cells.size() && notes_.size() < detail::table_notes; ++i)
    if (auto const& c = cells[i];
        columns_[i].kind == example::kind::strings && (c.nearly_numbers() || c.one_word()))
      notes_.push_back(fmt::format(
          "{}:{}: '{}' makes column '{}' a text; {} of its cells are numbers, {} are {}", file_.path(),
          c.line, edl::printable(c.first, 64), edl::printable(columns_[i].name, 64), c.numbers, c.texts,
          c.one_word() ? fmt::format("this word: {} makes them missing",
                                     detail::missing_with(options_.missing, c.first))
                       : "not"));
  // In a short file, a text column may happen to look like numbers, or be empty in all rows.
  if (options_.columns.empty())
    for (column& c : columns_) c.kind = wider(c.kind, known(c.name));
}

EDL_INLINE void csv_source::agree(std::vector<column> const& with) {
  for (auto const& [name, what, spelled, says_nothing] : with) {
    auto const own = std::ranges::find(columns_, name, &column::name);
    if (own == columns_.end()) {
      std::vector<std::string_view> names;
      for (column const& c : columns_) names.push_back(c.name);
      throw data_error(fmt::format("{}: lacks the column '{}', which other files of the set have{}",
                                   file_.path(), edl::printable(name, 64), detail::look_alike(name, names)));
    }
    if (what != example::kind::none) own->kind = what;
  }
}

EDL_INLINE bool csv_source::is_word_for_empty(std::string_view text) const {
  return options_.missing && std::ranges::find(*options_.missing, text) != options_.missing->end();
}

// A row spans several lines if a quoted field contains line ends, or if empty lines precede it.
EDL_INLINE std::uint64_t csv_source::line_of(std::uint64_t row) const {
  std::size_t const kept = std::size_t(row) / detail::csv_lines_kept;
  std::uint64_t line = lines_[kept];
  std::string block;
  for (std::uint64_t at = rows_[kept * detail::csv_lines_kept]; at < rows_[std::size_t(row)];
       at += block.size()) {
    block.resize(std::min<std::uint64_t>(detail::csv_block, rows_[std::size_t(row)] - at));
    file_.read(at, block.data(), block.size());
    line += std::uint64_t(std::ranges::count(block, '\n'));
  }
  return line;
}

EDL_INLINE std::unique_ptr<reader> csv_source::open() const {
  return std::make_unique<detail::csv_reader>(*this);
}

EDL_INLINE std::uint64_t csv_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  sum.add(file_.digest());
  for (std::uint64_t const offset : rows_)
    sum.add(offset);  // of long files that is more than the blocks tell
  return sum.value();
}

class libfm_reader final : public reader {
 public:
  explicit libfm_reader(libfm_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard != 0 || record >= from_.rows_.size())
      throw data_error(
          fmt::format("{}: no row {}: the file has {}", from_.path_, record, from_.rows_.size()));
    auto const& row = from_.rows_[std::size_t(record)];
    char const* const begin = from_.text_.data() + row.first;
    char const *at = begin, *const end = begin + row.size;
    auto const refuse = [&](std::string_view expected) {
      throw data_error(fmt::format("{}:{}:{}: expected {}", from_.path_, row.line, at - begin + 1, expected));
    };
    auto const number = [&](auto& to, std::string_view what) {
      auto const [next, failed] = std::from_chars(at + (at < end && *at == '+'), end, to);
      if (failed != std::errc()) refuse(what);
      at = next;
    };
    auto const blank = [&] {
      char const* const first = at;
      while (at < end && (*at == ' ' || *at == '\t')) ++at;
      return at > first;
    };
    float label = 0;
    ids_.clear();
    weights_.clear();
    blank();
    number(label, "a label");
    while (blank() && at < end) {
      number(ids_.emplace_back(), "an id");
      if (ids_.back() < 0) refuse("an id of at least 0");
      if (at == end || *at != ':') refuse("':' and a weight");
      ++at;
      number(weights_.emplace_back(), "a weight");
    }
    if (at < end) refuse("a blank");
    example_builder build{into};
    build.floating("label", label);
    build.integers("ids", ids_);
    build.floats("weights", weights_);
  }

 private:
  libfm_source const& from_;
  std::vector<std::int64_t> ids_;
  std::vector<float> weights_;
};

EDL_INLINE libfm_source::libfm_source(std::string const& path)
    : path_(path), text_(detail::read_all(path, 1ull << 30)) {
  std::size_t line = 0;
  for (std::size_t first = 0, next = 0; first < text_.size(); first = next) {
    std::size_t const end = std::min(text_.find('\n', first), text_.size());
    next = end + 1;
    ++line;
    std::size_t size = end - first;
    if (size > 0 && text_[end - 1] == '\r') --size;
    if (size > 0 && text_[first] != '#') rows_.push_back({first, size, line});
  }
  if (rows_.empty()) throw data_error(fmt::format("{}: has no rows", path));
  shards_.push_back({path.substr(path.find_last_of('/') + 1), rows_.size()});
}

EDL_INLINE std::unique_ptr<reader> libfm_source::open() const {
  return std::make_unique<libfm_reader>(*this);
}

EDL_INLINE std::uint64_t libfm_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  sum.add(text_);
  return sum.value();
}

EDL_INLINE csv_options census_options() {
  constexpr auto number = example::kind::integers, text = example::kind::strings;
  return {.columns = {{"age", number},
                      {"workclass", text},
                      {"fnlwgt", number},
                      {"education", text},
                      {"education_num", number},
                      {"marital_status", text},
                      {"occupation", text},
                      {"relationship", text},
                      {"race", text},
                      {"sex", text},
                      {"capital_gain", number},
                      {"capital_loss", number},
                      {"hours_per_week", number},
                      {"native_country", text},
                      {"label", text}},
          .blanks = " .",
          .comment = '|'};
}

EDL_INLINE csv_options criteo_options() {
  csv_options o{.delimiter = '\t'};
  o.columns.push_back({"label", example::kind::integers});
  for (int i = 1; i <= 13; ++i) o.columns.push_back({fmt::format("i{}", i), example::kind::integers});
  for (int i = 1; i <= 26; ++i) o.columns.push_back({fmt::format("c{}", i), example::kind::strings});
  return o;
}

}  // namespace edl::data
