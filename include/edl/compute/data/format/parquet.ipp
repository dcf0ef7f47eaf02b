// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/parquet.hpp"
#include "edl/compute/data/format/parquet_page.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::data::detail {

/// The decimal digits of a big-endian number in two's complement, with '-' before a negative one.
inline std::string digits_of(std::string_view big_endian) {
  std::string bytes(big_endian), digits;
  bool const negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  if (negative) {
    for (char& c : bytes) c = char(~c);
    for (auto c = bytes.rbegin(); c != bytes.rend() && ++*c == 0; ++c) {
    }
  }
  do {  // long division by ten
    unsigned rest = 0;
    bool left = false;
    for (char& c : bytes) {
      unsigned const now = rest << 8 | static_cast<unsigned char>(c);
      c = char(now / 10), rest = now % 10;
      left = left || c != 0;
    }
    digits += char('0' + rest);
    if (!left) break;
  } while (true);
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

inline void put_decimal(std::string digits, int behind, std::string& into) {
  bool const negative = digits.starts_with('-');
  if (negative) digits.erase(0, 1);
  if (behind > 0) {
    if (digits.size() <= std::size_t(behind)) digits.insert(0, std::size_t(behind) + 1 - digits.size(), '0');
    digits.insert(digits.size() - std::size_t(behind), ".");
  }
  into += negative ? "-" + digits : digits;
}

/// HH:MM:SS, with a fraction of `digits` digits unless it is zero.
inline void put_time(std::int64_t time, int digits, std::string& into) {
  std::int64_t whole = 1;
  for (int i = 0; i < digits; ++i) whole *= 10;
  std::int64_t const seconds = time / whole;
  if (time < 0 || seconds >= 86'400)
    throw data_error(fmt::format("expected a time of the day, found {} units of 1e-{} s", time, digits));
  fmt::format_to(std::back_inserter(into), "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
  if (time % whole == 0) return;
  into += fmt::format(".{:0{}}", time % whole, digits);
  into.erase(into.find_last_not_of('0') + 1);
}

/// A day since 1970-01-01 of the Gregorian calendar, in any year
/// (howardhinnant.github.io/date_algorithms.html, civil_from_days).
inline void put_day(std::int64_t day, std::string& into) {
  std::int64_t const z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
  std::int64_t const year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  std::int64_t const of_year = of_era - (365 * year + year / 4 - year / 100),
                     shifted = (5 * of_year + 2) / 153;
  std::int64_t const month = shifted < 10 ? shifted + 3 : shifted - 9;
  fmt::format_to(std::back_inserter(into), "{:04}-{:02}-{:02}", year + era * 400 + (month <= 2 ? 1 : 0),
                 month, of_year - (153 * shifted + 2) / 5 + 1);
}

inline double from_half(std::string_view two) {
  std::uint16_t h;
  std::memcpy(&h, two.data(), sizeof h);
  int const exponent = h >> 10 & 31, fraction = h & 1023;
  double const size = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                                  : std::numeric_limits<double>::infinity())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return h >> 15 ? -size : size;
}

inline bool is_stored_whole(parquet_column const& c) {
  return c.type == parquet_type::boolean || c.type == parquet_type::int32 || c.type == parquet_type::int64;
}

EDL_INLINE example::kind kind_of(parquet_column const& column) {
  using enum parquet_meaning;
  switch (column.meaning) {
    case decimal:
      return column.digits == 0 ? example::kind::integers : example::kind::floats;
    case float16:
      return example::kind::floats;
    case as_stored:
    case is_unsigned:
      if (is_stored_whole(column)) return example::kind::integers;
      return column.type == parquet_type::float32 || column.type == parquet_type::float64
                 ? example::kind::floats
                 : example::kind::strings;
    default:
      return example::kind::strings;
  }
}

EDL_INLINE bool may_be_too_large(parquet_column const& column) {
  if (column.meaning == parquet_meaning::is_unsigned) return column.type == parquet_type::int64;
  return column.meaning == parquet_meaning::decimal && column.digits == 0 && !is_stored_whole(column);
}

EDL_INLINE std::optional<std::int64_t> integer_at(parquet_column const& column, parquet_values const& values,
                                                  std::size_t i) {
  if (!is_stored_whole(column)) {
    auto bytes = values.bytes_at(i);
    auto const sign = [](char c) { return (c & 0x80) != 0 ? '\xff' : '\0'; };
    while (bytes.size() > 8) {
      if (bytes[0] != sign(bytes[1])) return std::nullopt;
      bytes.remove_prefix(1);
    }
    std::uint64_t n = bytes.empty() || sign(bytes[0]) == 0 ? 0 : ~std::uint64_t{0};
    for (char const c : bytes) n = n << 8 | static_cast<unsigned char>(c);
    return std::int64_t(n);
  }
  std::int64_t const n = values.integers[i];
  if (column.meaning != parquet_meaning::is_unsigned) return n;
  if (column.type == parquet_type::int32) return std::int64_t(std::uint32_t(n));
  return n >= 0 ? std::optional(n) : std::nullopt;
}

EDL_INLINE double number_at(parquet_column const& column, parquet_values const& values, std::size_t i) {
  if (column.meaning == parquet_meaning::float16) return from_half(values.bytes_at(i));
  if (!values.floats.empty()) return values.floats[i];
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (column.digits <= 22)
    if (auto const n = integer_at(column, values, i); n && *n <= exact && *n >= -exact) {
      double scale = 1;  // a power of ten that is exact, so that the quotient is rounded once
      for (int d = 0; d < column.digits; ++d) scale *= 10;
      return double(*n) / scale;
    }
  std::string text;
  text_at(column, values, i, text);
  return number_from<double>(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

EDL_INLINE std::string_view text_at(parquet_column const& column, parquet_values const& values, std::size_t i,
                                    std::string& scratch) {
  scratch.clear();
  auto const put = std::back_inserter(scratch);
  bool const whole = is_stored_whole(column);
  std::int64_t const n = whole ? values.integers[i] : 0;
  switch (column.meaning) {
    case parquet_meaning::as_stored:
      if (whole)
        fmt::format_to(put, "{}", n);
      else if (column.type == parquet_type::float32)
        fmt::format_to(put, "{}", float(values.floats[i]));
      else if (column.type == parquet_type::float64)
        fmt::format_to(put, "{}", values.floats[i]);
      else
        return values.bytes_at(i);
      break;
    case parquet_meaning::is_unsigned:
      if (column.type == parquet_type::int32)
        fmt::format_to(put, "{}", std::uint32_t(n));
      else
        fmt::format_to(put, "{}", std::uint64_t(n));
      break;
    case parquet_meaning::decimal:
      put_decimal(whole ? std::to_string(n) : digits_of(values.bytes_at(i)), column.digits, scratch);
      break;
    case parquet_meaning::date:
      put_day(n, scratch);
      break;
    case parquet_meaning::time:
      put_time(n, column.digits, scratch);
      break;
    case parquet_meaning::timestamp: {
      std::int64_t day = 0, time = 0;
      if (whole) {
        std::int64_t per_day = 86'400;
        for (int d = 0; d < column.digits; ++d) per_day *= 10;
        day = n / per_day - (n % per_day < 0 ? 1 : 0), time = n % per_day + (n % per_day < 0 ? per_day : 0);
      } else {  // nanoseconds of the day, and the day by Julius
        auto const stored = values.bytes_at(i);
        std::uint32_t julian;
        std::memcpy(&time, stored.data(), sizeof time);
        std::memcpy(&julian, stored.data() + sizeof time, sizeof julian);
        day = std::int64_t{julian} - 2'440'588;
      }
      put_day(day, scratch);
      scratch += ' ';
      put_time(time, column.digits, scratch);
      break;
    }
    case parquet_meaning::float16:
      fmt::format_to(put, "{}", float(from_half(values.bytes_at(i))));
      break;
    case parquet_meaning::uuid: {
      auto const bytes = values.bytes_at(i);
      for (std::size_t b = 0; b < bytes.size(); ++b)
        fmt::format_to(put, "{}{:02x}", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "",
                       static_cast<unsigned char>(bytes[b]));
      break;
    }
  }
  if (column.utc && (column.meaning == parquet_meaning::timestamp || column.meaning == parquet_meaning::time))
    scratch += 'Z';
  return scratch;
}

}  // namespace edl::data::detail

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t parquet_header_limit = 1u << 20;

/// Pages of a file, unpacked on demand. It caches them up to a number of bytes, besides the last one of each
/// column.
class parquet_pages {
 public:
  struct place {
    std::uint64_t at = 0;  // of its header
    parquet_page_header header;
    std::uint64_t first = 0;  // row that begins in it, of the row group
    parquet_rows rows = {};
    std::unique_ptr<parquet_page> page = {};
    std::uint64_t used = 0;
  };
  struct chunk {
    std::vector<place> places;
    std::shared_ptr<parquet_values const> dictionary;
  };

  parquet_pages(input_file const& file, parquet_metadata const& of, std::size_t bytes)
      : file_(file), of_(of), most_(bytes), now_(of.columns.size()) {}

  /// The page in which a row of a row group begins. Valid until the next call for its column.
  place& find(std::size_t group, std::size_t column, std::uint64_t row) {
    current& now = now_[column];
    if (!now.in || now.group != group) now = {.in = &open(group, column), .group = group};
    auto& places = now.in->places;
    bool const here = now.at < places.size() && row >= places[now.at].first &&
                      (now.at + 1 == places.size() || row < places[now.at + 1].first);
    if (!here)
      now.at = std::size_t(std::ranges::upper_bound(places, row, {}, &place::first) - places.begin()) - 1;
    return load(column);
  }

  /// Releases the column's current page.
  void release(std::size_t column) { now_[column] = {}; }

  /// The next page in the row group; null: this is the last.
  place* next(std::size_t column) {
    current& now = now_[column];
    if (now.at + 1 == now.in->places.size()) return nullptr;
    ++now.at;
    return &load(column);
  }

 private:
  struct current {
    chunk* in = nullptr;
    std::size_t group = 0, at = 0;
  };

  /// Calls `act` for a place; an error then names the place.
  template <class Act>
  auto at_place(std::size_t group, std::size_t column, std::uint64_t at, Act&& act) const try {
    return act();
  } catch (changed_error const&) {
    throw;
  } catch (unread_error const&) {
    throw;
  } catch (data_error const& e) {
    throw data_error(fmt::format("{}: row group {}, column '{}', page at byte {}: {}", file_.path(), group,
                                 edl::printable(of_.columns[column].name, 64), at, e.what()));
  }

  parquet_chunk const& stored(std::size_t group, std::size_t column) const {
    return of_.groups[group].chunks[of_.columns[column].leaf];
  }

  std::string_view read(std::uint64_t at, std::uint64_t count) {
    bytes_.resize(std::size_t(count));
    file_.read(at, bytes_.data(), bytes_.size());
    file_.check_unchanged();
    return bytes_;
  }

  /// The stored bytes of a page after its header.
  std::string_view body(place const& p) {
    auto const bytes = read(p.at + p.header.header, p.header.size);
    if (auto const found = p.header.has_checksum ? crc32(bytes) : 0;
        p.header.has_checksum && found != p.header.checksum)
      throw data_error(
          fmt::format("has checksum {:#010x}, its bytes have {:#010x}", p.header.checksum, found));
    return bytes;
  }

  parquet_page_header header(std::uint64_t at, std::uint64_t end) {
    // A header may contain texts of any length, as the smallest and the largest value.
    for (std::uint64_t count = 128;; count *= 8) {
      std::uint64_t const now = std::min({count, end - at, parquet_header_limit});
      try {
        auto const h = parse_parquet_page_header(read(at, now));
        if (h.size > end - at - h.header)
          throw data_error(
              fmt::format("claims {} bytes, but the column has only {} more", h.size, end - at - h.header));
        return h;
      } catch (changed_error const&) {
        throw;
      } catch (data_error const&) {
        if (now < count) throw;
      }
    }
  }

  chunk& open(std::size_t group, std::size_t column) {
    auto const [it, fresh] = chunks_.try_emplace({group, column});
    if (!fresh) return it->second;
    try {
      list(group, column, it->second);
    } catch (...) {
      drop(it);
      throw;
    }
    return it->second;
  }

  void list(std::size_t group, std::size_t column, chunk& into) {
    using kind = parquet_page_header::kind;
    parquet_chunk const& c = stored(group, column);
    parquet_column const& what = of_.columns[column];
    std::uint64_t rows = 0, values = 0;
    for (std::uint64_t at = c.begin; at < c.end && values < c.values;)
      at_place(group, column, at, [&] {
        place p{.at = at, .header = header(at, c.end), .first = rows};
        auto const& h = p.header;
        at += h.header + h.size;
        if (h.type == kind::index) return;
        if (h.type == kind::dictionary) {
          if (into.dictionary) throw data_error("is a second dictionary");
          into.dictionary =
              std::make_shared<parquet_values const>(read_parquet_dictionary(what, c.codec, h, body(p)));
          held_ += into.dictionary->memory();
          return;
        }
        if (h.values > c.values - values)
          throw data_error(
              fmt::format("claims {} values, but the column has only {} more", h.values, c.values - values));
        values += h.values;
        parquet_rows in{.begun = h.values};
        if (what.list_definition > 0) in = count_parquet_rows(what, c.codec, h, body(p));
        if (in.continued > 0 && rows == 0) throw data_error("continues a row, but no row precedes it");
        p.rows = in;
        rows += in.begun;
        if (h.values > 0) into.places.push_back(std::move(p));
      });
    if (auto const expected = of_.groups[group].rows; values != c.values || rows != expected)
      at_place(group, column, c.begin, [&] {
        throw data_error(fmt::format(
            "this page and the following ones hold {} values of {} rows, but the metadata gives {} of {}",
            values, rows, c.values, expected));
      });
  }

  place& load(std::size_t column) {
    current const& now = now_[column];
    place& p = now.in->places[now.at];
    p.used = ++uses_;
    if (p.page) return p;
    at_place(now.group, column, p.at, [&] {
      auto page = std::make_unique<parquet_page>(read_parquet_page(
          of_.columns[column], stored(now.group, column).codec, p.header, body(p), now.in->dictionary));
      // Rows are located by the counts that were read when the column was opened, so they must match.
      if (page->count != p.header.values ||
          (of_.columns[column].list_definition > 0 && page->rows.size() != p.rows.begun))
        throw changed_error(fmt::format("{}: was changed while it was being read", file_.path()));
      held_ += page->memory();
      p.page = std::move(page);
    });
    while (held_ > most_ && forget()) {
    }
    return p;
  }

  /// Drops the least recently used page, and the data that no page needs; false: all are in use.
  bool forget() {
    place* oldest = nullptr;
    for (auto it = chunks_.begin(); it != chunks_.end();) {
      chunk& c = it->second;
      current const& now = now_[it->first.second];
      bool empty = now.in != &c;
      for (std::size_t i = 0; i < c.places.size(); ++i) {
        place& p = c.places[i];
        if (!p.page) continue;
        empty = false;
        if (now.in == &c && now.at == i) continue;
        if (!oldest || p.used < oldest->used) oldest = &p;
      }
      if (!empty) {
        ++it;
        continue;
      }
      it = drop(it);
    }
    if (!oldest) return false;
    held_ -= oldest->page->memory();
    oldest->page.reset();
    return true;
  }

  using chunks = std::map<std::pair<std::size_t, std::size_t>, chunk>;  // by row group and column

  chunks::iterator drop(chunks::iterator it) {
    if (auto const& d = it->second.dictionary) held_ -= d->memory();
    return chunks_.erase(it);
  }

  input_file const& file_;
  parquet_metadata const& of_;
  std::size_t most_, held_ = 0;
  std::uint64_t uses_ = 0;
  chunks chunks_;
  std::vector<current> now_;  // of each column
  std::string bytes_;
};

class parquet_reader final : public choosing_reader {
 public:
  explicit parquet_reader(parquet_source const& from)
      : from_(from),
        pages_(from.file_, from.metadata_, from.cache_bytes_),
        chosen_(from.columns_.size(), true) {}

  void choose(feature_names const* names) override {
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      chosen_[i] = !names || names->contains(from_.columns_[i].name);
      if (!chosen_[i]) pages_.release(i);
    }
  }
  bool leaves_out(std::string_view name) const override {
    auto const& all = from_.columns_;
    auto const it = std::ranges::find(all, name, &table_column::name);
    return it != all.end() && !chosen_[std::size_t(it - all.begin())];
  }

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& of = from_.metadata_;
    if (shard != 0 || record >= of.rows)
      throw data_error(fmt::format("{}: no row {}: the file has {}", from_.file_.path(), record, of.rows));
    auto const group =
        std::size_t(std::ranges::upper_bound(of.groups, record, {}, &parquet_metadata::row_group::first) -
                    of.groups.begin()) -
        1;
    std::uint64_t const row = record - of.groups[group].first;
    example_builder build{into};
    for (std::size_t i = 0; i < of.columns.size(); ++i) {
      if (!chosen_[i]) continue;
      auto& place = pages_.find(group, i, row);
      if (of.columns[i].list_definition > 0)
        list(i, place, row, build);
      else
        cell(i, *place.page, std::size_t(row - place.first), build);
    }
  }

 private:
  data_error refuse(std::size_t column, std::string_view expected, std::string_view found) const {
    return data_error(fmt::format("{}: expected {} in column '{}', found {}", from_.file_.path(), expected,
                                  edl::printable(from_.columns_[column].name, 64), found));
  }

  std::string_view text(std::size_t column, parquet_values const& values, std::size_t i) {
    try {
      return text_at(from_.metadata_.columns[column], values, i, text_);
    } catch (data_error const& e) {
      throw data_error(fmt::format("{}: column '{}': {}", from_.file_.path(),
                                   edl::printable(from_.columns_[column].name, 64), e.what()));
    }
  }

  std::int64_t integer(std::size_t column, parquet_values const& values, std::size_t i) {
    auto const& c = from_.metadata_.columns[column];
    if (auto const n = integer_at(c, values, i)) return *n;
    throw refuse(column, "a whole number of 64 bits with a sign", text(column, values, i));
  }

  void cell(std::size_t column, parquet_page const& page, std::size_t row, example_builder& build) {
    auto const& c = from_.metadata_.columns[column];
    auto const& [name, kind, spelled, says_nothing] = from_.columns_[column];
    std::uint32_t const at = page.value(row);
    parquet_values const& values = *page.values;
    bool missing = at >= parquet_page::no_list;
    std::string_view found;
    if (!missing && (kind == example::kind::strings || from_.missing_)) {
      found = text(column, values, at);
      missing = from_.missing_ && std::ranges::find(*from_.missing_, trimmed(found)) != from_.missing_->end();
    }
    if (kind == example::kind::strings) {
      build.bytes(name, missing ? std::string_view() : found);
      if (missing) return;
      if (auto const n = number_from<std::int64_t>(found)) build.also(*n);
      // If a number is too large for an integer, a float would be a different number.
      if (auto const n = spelled ? std::nullopt : number_from<double>(found)) build.also(float(*n));
    } else if (missing) {
      return;
    } else if (kind == example::kind::integers) {
      build.integer(name, integer(column, values, at));
    } else {
      double const n = number_at(c, values, at);
      build.floating(name, float(n));
      constexpr double exact = double(std::int64_t{1} << 53);
      if (n >= -exact && n <= exact && double(std::int64_t(n)) == n) build.also(std::int64_t(n));
    }
  }

  /// Reads a row of a list, which may continue in the following pages.
  void list(std::size_t column, parquet_pages::place& first, std::uint64_t row, example_builder& build) {
    auto const& c = from_.metadata_.columns[column];
    auto const& [name, kind, spelled, says_nothing] = from_.columns_[column];
    integers_.clear(), floats_.clear(), texts_.clear();
    bool null = false;
    auto const take = [&](parquet_page const& page, std::size_t begin, std::size_t end) {
      for (std::size_t slot = begin; slot < end; ++slot) {
        std::uint32_t const at = page.value(slot);
        null = null || at == parquet_page::no_list;
        if (at == parquet_page::null) throw refuse(column, "a value in the list", "null");
        if (at >= parquet_page::no_list) continue;
        if (kind == example::kind::strings)
          texts_.emplace_back(text(column, *page.values, at));
        else if (kind == example::kind::integers)
          integers_.push_back(integer(column, *page.values, at));
        else
          floats_.push_back(float(number_at(c, *page.values, at)));
      }
    };
    auto const in_page = std::size_t(row - first.first);
    auto const& rows = first.page->rows;
    bool last = in_page + 1 == rows.size();
    take(*first.page, rows[in_page], last ? first.page->count : rows[in_page + 1]);
    while (last) {
      auto const* const more = pages_.next(column);
      if (!more || more->rows.continued == 0) break;
      take(*more->page, 0, more->rows.continued);
      last = more->page->rows.empty();
    }
    if (null) return;
    if (kind == example::kind::strings) {
      std::vector<std::string_view> const views(texts_.begin(), texts_.end());
      build.bytes(name, views);
    } else if (kind == example::kind::integers) {
      build.integers(name, view<std::int64_t>(integers_));
    } else {
      build.floats(name, view<float>(floats_));
    }
  }

  parquet_source const& from_;
  parquet_pages pages_;
  std::vector<bool> chosen_;  // columns
  std::string text_;
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
  std::vector<std::string> texts_;
};

}  // namespace detail

EDL_INLINE parquet_source::parquet_source(std::string const& path, source_options const& options)
    : file_(path),
      metadata_(detail::read_parquet_metadata(file_)),
      missing_(options.missing),
      cache_bytes_(options.cache_bytes) {
  for (std::string const& note : metadata_.notes)
    if (notes_.size() < detail::table_notes) notes_.push_back(fmt::format("{}: {}", path, note));
  if (auto const all = metadata_.notes.size(); all > notes_.size())
    notes_.push_back(fmt::format("{}: {} more columns are left out", path, all - notes_.size()));
  if (metadata_.columns.empty())
    throw data_error(fmt::format("{}: has no column that is read{}", path,
                                 metadata_.notes.empty() ? "" : "; " + metadata_.notes.front()));
  for (auto const& c : metadata_.columns) columns_.push_back({c.name, detail::kind_of(c)});
  find_large_numbers();
  for (table_column& c : columns_)
    if (options.known)
      if (auto const it = std::ranges::find(*options.known, c.name, &table_column::name);
          it != options.known->end())
        c.kind = wider(c.kind, it->kind);
  shards_.push_back({path.substr(path.find_last_of('/') + 1), metadata_.rows});
}

EDL_INLINE void parquet_source::find_large_numbers() {
  detail::parquet_pages pages(file_, metadata_, 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    auto const& c = metadata_.columns[i];
    if (!may_be_too_large(c)) continue;
    auto const large = [&](detail::parquet_page const& page) -> std::optional<std::string> {
      for (std::size_t v = 0; v < page.values->size(); ++v)
        if (std::string text; !integer_at(c, *page.values, v))
          return std::string(text_at(c, *page.values, v, text));
      return std::nullopt;
    };
    // An error in a page is reported when its rows are read.
    try {
      for (std::size_t g = 0; g < metadata_.groups.size() && !columns_[i].spelled; ++g) {
        if (metadata_.groups[g].rows == 0) continue;
        for (auto* p = &pages.find(g, i, 0); p; p = pages.next(i))
          if (auto const text = large(*p->page)) {
            columns_[i] = {.name = c.name, .kind = example::kind::strings, .spelled = true};
            if (notes_.size() < detail::table_notes)
              notes_.push_back(
                  fmt::format("{}: {} does not fit 64 bits with a sign, and makes column '{}' of whole "
                              "numbers a text",
                              file_.path(), *text, edl::printable(c.name, 64)));
            break;
          }
      }
    } catch (changed_error const&) {
      throw;
    } catch (detail::unread_error const&) {
      throw;  // another process may be able to read it, and all must give the column one type
    } catch (data_error const&) {
    }
  }
}

EDL_INLINE void parquet_source::agree(std::vector<table_column> const& with) {
  for (auto const& [name, what, spelled, says_nothing] : with) {
    auto const own = std::ranges::find(columns_, name, &table_column::name);
    if (own == columns_.end()) {
      std::vector<std::string_view> names;
      for (table_column const& c : columns_) names.push_back(c.name);
      throw data_error(fmt::format("{}: lacks the column '{}', which other files of the set have{}",
                                   file_.path(), edl::printable(name, 64), detail::look_alike(name, names)));
    }
    if (what != example::kind::none) own->kind = what;
    own->spelled |= spelled;
  }
}

EDL_INLINE std::unique_ptr<reader> parquet_source::open() const {
  return std::make_unique<detail::parquet_reader>(*this);
}

EDL_INLINE std::uint64_t parquet_source::digest(std::size_t shard) const {
  return shard == 0 ? detail::digest_of(file_) : 0;
}

}  // namespace edl::data
