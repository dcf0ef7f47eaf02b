// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// Reads values from the front of bytes. Throws data_error beyond their end.
class byte_cursor {
 public:
  explicit byte_cursor(std::string_view bytes) : all_(bytes), left_(bytes) {}

  std::size_t offset() const { return all_.size() - left_.size(); }
  std::string_view left() const { return left_; }

  std::string_view take(std::uint64_t count);
  template <class T>
  T number() {  // little-endian
    T n{};
    std::ranges::copy(take(sizeof n), reinterpret_cast<char*>(&n));
    return n;
  }
  std::uint64_t varint();
  std::int64_t zigzag() {
    auto const n = varint();
    return std::int64_t(n >> 1 ^ (0 - (n & 1)));
  }

 private:
  std::string_view all_, left_;
};

inline std::string_view byte_cursor::take(std::uint64_t count) {
  if (count > left_.size())
    throw data_error(fmt::format("expected {} bytes at byte {}, found {}", count, offset(), left_.size()));
  auto const taken = left_.substr(0, std::size_t(count));
  left_.remove_prefix(taken.size());
  return taken;
}

inline std::uint64_t byte_cursor::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    auto const byte = static_cast<unsigned char>(take(1)[0]);
    value |= std::uint64_t(byte & 0x7Fu) << shift;
    if (byte < 0x80) return value;
  }
  throw data_error(fmt::format("a number at byte {} has more than 64 bits", offset()));
}

/// Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md).
class thrift_reader {
 public:
  enum type : std::uint8_t { yes = 1, no, i8, i16, i32, i64, real, binary, list, set, map, structure };

  explicit thrift_reader(std::string_view bytes) : at_(bytes) {}

  std::size_t offset() const { return at_.offset(); }

  /// Calls `field(id, type)` for each field of a struct; it reads the field and returns true, or returns
  /// false to skip it.
  template <class Field>
  void fields(Field&& field) {
    if (++depth_ > 32)
      throw data_error(fmt::format("has too many structs in one another at byte {}", offset()));
    std::int64_t id = 0;
    while (auto const head = at_.number<std::uint8_t>()) {
      id = head >> 4 != 0 ? id + (head >> 4) : at_.zigzag();
      if (!std::in_range<std::int16_t>(id))
        throw data_error(fmt::format("has field number {} at byte {}, out of range", id, offset()));
      auto const what = type(head & 15);
      if (!field(id, what)) skip(what);
    }
    --depth_;
  }

  /// Calls `element()` for each struct of a list.
  template <class Element>
  void structs(type what, Element&& element) {
    need(what, list);
    auto const [count, of] = list_head();
    if (count > 0) need(of, structure);
    for (std::uint64_t i = 0; i < count; ++i) element();
  }

  /// Each reads a value of its type, and returns true.
  template <std::integral T>
  bool number(type what, T& into, T least = 0) {
    if (what == i8) return put(static_cast<signed char>(at_.take(1)[0]), into, least);
    if (what != i16 && what != i32) need(what, i64);
    return put(at_.zigzag(), into, least);
  }
  bool text(type what, std::string& into) {
    need(what, binary);
    into = at_.take(at_.varint());
    return true;
  }
  bool flag(type what, bool& into) {
    if (what != no) need(what, yes);
    into = what == yes;
    return true;
  }
  void need(type what, type wanted) const {
    if (what != wanted)
      throw data_error(
          fmt::format("expected type {} at byte {}, found {}", int(wanted), offset(), int(what)));
  }

 private:
  std::pair<std::uint64_t, type> list_head() {
    auto const head = at_.number<std::uint8_t>();
    std::uint64_t const count = head >> 4 != 15 ? head >> 4 : at_.varint();
    // Each element takes at least a byte.
    if (count > at_.left().size())
      throw data_error(fmt::format("claims {} elements of a list at byte {}", count, offset()));
    return {count, type(head & 15)};
  }
  template <class T>
  bool put(std::int64_t value, T& into, T least) {
    if (!std::in_range<T>(value) || T(value) < least)
      throw data_error(fmt::format("has the value {} at byte {}, out of range", value, offset()));
    into = T(value);
    return true;
  }
  void skip(type what, bool element = false) {
    switch (what) {
      case yes:
      case no:
        if (element) at_.take(1);
        return;
      case i8:
        at_.take(1);
        return;
      case i16:
      case i32:
      case i64:
        at_.varint();
        return;
      case real:
        at_.take(8);
        return;
      case binary:
        at_.take(at_.varint());
        return;
      case list:
      case set:
      case map:
        return skip_elements(what);
      case structure:
        return fields([](std::int64_t, type) { return false; });
    }
    throw data_error(fmt::format("has the unknown type {} at byte {}", int(what), offset()));
  }
  void skip_elements(type what) {
    if (++depth_ > 32)
      throw data_error(fmt::format("has too many lists in one another at byte {}", offset()));
    if (what == map) {
      auto const count = at_.varint();
      if (count > at_.left().size())
        throw data_error(fmt::format("claims {} elements of a map at byte {}", count, offset()));
      auto const kinds = count > 0 ? at_.number<std::uint8_t>() : std::uint8_t(0);
      for (std::uint64_t i = 0; i < count; ++i) skip(type(kinds >> 4), true), skip(type(kinds & 15), true);
    } else {
      auto const [count, of] = list_head();
      for (std::uint64_t i = 0; i < count; ++i) skip(of, true);
    }
    --depth_;
  }

  byte_cursor at_;
  int depth_ = 0;
};

/// Limits of an unpacked page.
inline constexpr std::uint32_t parquet_page_limit = 256u << 20, parquet_values_limit = 1u << 24;

/// Largest size of a decimal, which allows 76 digits.
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

/// The meaning of a stored value, if it needs special treatment.
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

/// A column that is read: one value per row, or a list of them.
struct parquet_column {
  std::string name;      ///< with '.' between the object's and the member's name
  std::size_t leaf = 0;  ///< its index among all columns of the file
  parquet_type type = parquet_type::boolean;
  parquet_meaning meaning = parquet_meaning::as_stored;
  std::uint32_t width = 0;            ///< of fixed_bytes
  int digits = 0;                     ///< after the point: of a decimal, of the seconds
  bool utc = false;                   ///< the time is UTC
  std::uint32_t most_definition = 0;  ///< the level of a value that is not null
  std::uint32_t list_definition = 0;  ///< the level of a list's element, also a null; 0: not a list

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
  std::vector<std::string> notes;  ///< about the columns that are left out, one line each
};

/// Reads the metadata at the file's end: the columns, and the positions of their pages. Throws data_error,
/// which names the file, if it is encrypted, truncated or malformed.
parquet_metadata read_parquet_metadata(input_file const& file);

/// The same from the bytes of the metadata; columns are in [4, end).
parquet_metadata parse_parquet_metadata(std::string_view bytes, std::uint64_t end);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/parquet_metadata.ipp"
#endif
