// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/parquet_metadata.hpp"
#include "edl/compute/data/format/parquet_page.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

// The encodings are defined in apache/parquet-format, Encodings.md.
namespace edl::data::detail {

EDL_INLINE parquet_page_header parse_parquet_page_header(std::string_view bytes) {
  using type = thrift_reader::type;
  using kind = parquet_page_header::kind;
  thrift_reader in(bytes);
  parquet_page_header h;
  int page = -1, encoding = 0, definition = 3, repetition = 3;
  std::int64_t checksum = 0;
  in.fields([&](std::int64_t id, type what) {
    switch (id) {
      case 1:
        return in.number(what, page);
      case 2:
        return in.number(what, h.unpacked);
      case 3:
        return in.number(what, h.size);
      case 4:
        h.has_checksum = true;
        return in.number(what, checksum, std::numeric_limits<std::int64_t>::min());
      case 5:
      case 7:
        in.need(what, type::structure);
        in.fields([&](std::int64_t field, type t) {
          if (field == 1) return in.number(t, h.values);
          if (field == 2) return in.number(t, encoding);
          if (id == 5 && field == 3) return in.number(t, definition);
          return id == 5 && field == 4 && in.number(t, repetition);
        });
        return true;
      case 8:
        in.need(what, type::structure);
        in.fields([&](std::int64_t field, type t) {
          switch (field) {
            case 1:
              return in.number(t, h.values);
            case 3:
              return in.number(t, h.rows);
            case 4:
              return in.number(t, encoding);
            case 5:
              return in.number(t, h.definition_size);
            case 6:
              return in.number(t, h.repetition_size);
            case 7:
              return in.flag(t, h.packed);
            default:
              return false;
          }
        });
        return true;
      default:
        return false;
    }
  });
  if (page < 0 || page > 3) throw data_error(fmt::format("has the unknown type {}", page));
  h.type = kind(page);
  h.header = in.offset();
  h.checksum = std::uint32_t(checksum);
  for (auto const& [from, to] :
       {std::pair{encoding, &h.encoding}, {definition, &h.definition}, {repetition, &h.repetition}}) {
    if (from > 9 || from == 1) throw data_error(fmt::format("has the unknown encoding {}", from));
    *to = parquet_encoding(from);
  }
  // Version 2 allows no other encoding, whatever the fields of version 1 say.
  if (h.type == kind::data_v2) h.definition = h.repetition = parquet_encoding::rle;
  if (h.unpacked > parquet_page_limit || h.values > parquet_values_limit)
    throw data_error(fmt::format(
        "claims {} uncompressed bytes and {} values, at most {} and {} are read; write smaller pages",
        h.unpacked, h.values, parquet_page_limit, parquet_values_limit));
  return h;
}

/// The number of `width` bits at bit `at` of `bytes`, least significant bits first.
inline std::uint64_t bits_at(std::string_view bytes, std::size_t at, unsigned width) {
  std::size_t const first = at / 8;
  auto const shift = unsigned(at % 8);
  std::uint64_t word = 0;
  if (bytes.size() - first >= sizeof word)
    std::memcpy(&word, bytes.data() + first, sizeof word);
  else
    std::memcpy(&word, bytes.data() + first, bytes.size() - first);
  word >>= shift;
  if (shift + width > 64) word |= std::uint64_t(static_cast<unsigned char>(bytes[first + 8])) << (64 - shift);
  return width < 64 ? word & ((std::uint64_t{1} << width) - 1) : word;
}

EDL_INLINE void read_parquet_runs(byte_cursor& from, unsigned width, std::size_t count,
                                  std::vector<std::uint32_t>& into) {
  if (width > 32) throw data_error(fmt::format("claims numbers of {} bits", width));
  std::size_t const end = into.size() + count;
  into.reserve(end);
  while (into.size() < end) {
    auto const head = from.varint();
    std::uint64_t const runs = head >> 1;
    if (runs == 0) throw data_error(fmt::format("a run of no values at byte {}", from.offset()));
    if (head & 1) {
      // Eight values of `width` bits are `width` bytes. The last ones may be cut off.
      if (runs > (1u << 28))
        throw data_error(fmt::format("a run of {} values at byte {}", runs, from.offset()));
      std::size_t const now = std::min<std::size_t>(std::size_t(runs) * 8, end - into.size());
      std::size_t const needed = (now * width + 7) / 8;
      auto const packed =
          from.take(std::max(needed, std::min<std::size_t>(std::size_t(runs) * width, from.left().size())));
      for (std::size_t i = 0; i < now; ++i) into.push_back(std::uint32_t(bits_at(packed, i * width, width)));
    } else {
      std::uint32_t value = 0;
      auto const bytes = from.take((width + 7) / 8);
      std::memcpy(&value, bytes.data(), bytes.size());
      if (width < 32 && value >> width != 0)
        throw data_error(fmt::format("{} in a run of {} bits at byte {}", value, width, from.offset()));
      into.resize(into.size() + std::size_t(std::min<std::uint64_t>(runs, end - into.size())), value);
    }
  }
}

EDL_INLINE void read_parquet_deltas(byte_cursor& from, std::size_t count, std::vector<std::int64_t>& into) {
  auto const block = from.varint(), parts = from.varint(), total = from.varint();
  if (parts == 0 || parts > 512 || block == 0 || block > (1u << 24) || block % parts != 0 ||
      (block / parts) % 8 != 0)
    throw data_error(fmt::format("deltas in blocks of {} by {}", block, parts));
  if (total != count) throw data_error(fmt::format("claims {} deltas for {} values", total, count));
  // The format lets numbers wrap around.
  auto last = std::uint64_t(from.zigzag());
  if (count == 0) return;
  into.reserve(into.size() + count);
  into.push_back(std::int64_t(last));
  std::size_t const each = std::size_t(block / parts);
  for (std::size_t left = count - 1; left > 0;) {
    auto const least = std::uint64_t(from.zigzag());
    auto const widths = from.take(parts);
    for (char const byte : widths) {
      if (left == 0) break;  // parts after the last value have no bytes
      unsigned const width = static_cast<unsigned char>(byte);
      if (width > 64) throw data_error(fmt::format("deltas of {} bits at byte {}", width, from.offset()));
      std::size_t const now = std::min(each, left);
      // Some writers truncate the last part.
      auto const packed =
          from.take(std::max((now * width + 7) / 8, std::min(each * width / 8, from.left().size())));
      for (std::size_t i = 0; i < now; ++i)
        into.push_back(std::int64_t(last += least + bits_at(packed, i * width, width)));
      left -= now;
    }
  }
}

/// Appends a value to a pool of fixed_bytes, bytes or int96.
inline void add_parquet_bytes(std::string_view prefix, std::string_view rest, parquet_values& into) {
  // Prefixes refer to earlier values, so a few bytes of a page can expand to many.
  if (into.bytes.size() + prefix.size() + rest.size() > parquet_page_limit)
    throw data_error(fmt::format("its values have more than {} bytes", parquet_page_limit));
  into.bytes.append(prefix).append(rest);
  into.ends.push_back(into.bytes.size());
}

inline std::size_t lengths_at(std::int64_t n) {
  if (n < 0 || n > std::int64_t(parquet_page_limit))
    throw data_error(fmt::format("claims a string of {} bytes", n));
  return std::size_t(n);
}

template <class T, class To>
void read_numbers(byte_cursor& from, std::size_t count, std::vector<To>& into) {
  auto const bytes = from.take(count * sizeof(T));
  into.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    T n;
    std::memcpy(&n, bytes.data() + i * sizeof n, sizeof n);
    into[i] = n;
  }
}

/// `count` is at most parquet_values_limit.
inline void read_plain(parquet_column const& column, byte_cursor& from, std::size_t count,
                       parquet_values& into) {
  switch (column.type) {
    case parquet_type::boolean: {
      auto const bits = from.take((count + 7) / 8);
      for (std::size_t i = 0; i < count; ++i) into.integers.push_back(std::int64_t(bits_at(bits, i, 1)));
      return;
    }
    case parquet_type::int32:
      return read_numbers<std::int32_t>(from, count, into.integers);
    case parquet_type::int64:
      return read_numbers<std::int64_t>(from, count, into.integers);
    case parquet_type::float32:
      return read_numbers<float>(from, count, into.floats);
    case parquet_type::float64:
      return read_numbers<double>(from, count, into.floats);
    case parquet_type::bytes:
      for (std::size_t i = 0; i < count; ++i)
        add_parquet_bytes({}, from.take(from.number<std::uint32_t>()), into);
      return;
    case parquet_type::int96:
    case parquet_type::fixed_bytes:
      into.bytes = from.take(std::uint64_t(count) * column.width);
      for (std::size_t i = 0; i < count; ++i) into.ends.push_back((i + 1) * column.width);
  }
}

inline std::size_t stored_width(parquet_column const& column) {
  switch (column.type) {
    case parquet_type::int32:
    case parquet_type::float32:
      return 4;
    case parquet_type::int64:
    case parquet_type::float64:
      return 8;
    default:
      return column.width;
  }
}

inline bool is_text(parquet_column const& c) {
  return c.type == parquet_type::bytes || c.type == parquet_type::fixed_bytes;
}

/// Parsing a number's digits takes quadratic time, so their count is limited.
inline void check_decimals(parquet_column const& column, parquet_values const& all) {
  if (column.meaning != parquet_meaning::decimal) return;
  for (std::size_t i = 0; i < all.ends.size(); ++i)
    if (auto const size = all.bytes_at(i).size(); size == 0 || size > parquet_decimal_bytes)
      throw data_error(fmt::format("a decimal of {} bytes, expected 1 to {}", size, parquet_decimal_bytes));
}

/// Reads values that do not refer to a dictionary.
inline void read_own_values(parquet_column const& column, parquet_encoding encoding, byte_cursor& from,
                            std::size_t count, parquet_values& into) {
  using enum parquet_encoding;
  bool const whole = column.type == parquet_type::int32 || column.type == parquet_type::int64;
  std::vector<std::int64_t> lengths, prefixes;
  if (encoding == plain) {
    read_plain(column, from, count, into);
  } else if (encoding == rle && column.type == parquet_type::boolean) {
    std::vector<std::uint32_t> bits;
    byte_cursor runs(from.take(from.number<std::uint32_t>()));
    read_parquet_runs(runs, 1, count, bits);
    into.integers.assign(bits.begin(), bits.end());
  } else if (encoding == delta_binary_packed && whole) {
    read_parquet_deltas(from, count, into.integers);
    if (column.type == parquet_type::int32)
      for (std::int64_t& n : into.integers) n = std::int32_t(n);
  } else if (encoding == delta_length_byte_array && column.type == parquet_type::bytes) {
    read_parquet_deltas(from, count, lengths);
    for (std::int64_t const n : lengths) add_parquet_bytes({}, from.take(lengths_at(n)), into);
  } else if (encoding == delta_byte_array && is_text(column)) {
    read_parquet_deltas(from, count, prefixes);
    read_parquet_deltas(from, count, lengths);
    std::string before;
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t const kept = lengths_at(prefixes[i]);
      if (kept > before.size())
        throw data_error(fmt::format("value {} begins as a longer one than is before it", i));
      auto const rest = from.take(lengths_at(lengths[i]));
      add_parquet_bytes(std::string_view(before).substr(0, kept), rest, into);
      before.resize(kept);
      before += rest;
      if (column.width > 0 && before.size() != column.width)
        throw data_error(fmt::format("value {} has {} bytes instead of {}", i, before.size(), column.width));
    }
  } else if (encoding == byte_stream_split && stored_width(column) > 0) {
    std::size_t const width = stored_width(column);
    auto const streams = from.take(std::uint64_t(count) * width);
    std::string together(streams.size(), '\0');
    for (std::size_t b = 0; b < width; ++b)
      for (std::size_t i = 0; i < count; ++i) together[i * width + b] = streams[b * count + i];
    byte_cursor values(together);
    read_plain(column, values, count, into);
  } else {
    throw data_error(fmt::format("encoding {} does not go with type {}", int(encoding), int(column.type)));
  }
}

inline void unpack(parquet_codec codec, std::string_view packed, std::size_t size, std::string& into) {
  constexpr char const* names[]{"", "", "", "LZO", "Brotli", "LZ4 in Hadoop's framing"};
  switch (codec) {
    case parquet_codec::none:
      into = packed;
      break;
    case parquet_codec::snappy:
      unpack_snappy_block(packed, size, into);
      break;
    case parquet_codec::gzip:
      unpack_gzip(packed, size, into);
      break;
    case parquet_codec::zstd:
      unpack_zstd(packed, size, into);
      break;
    case parquet_codec::lz4_raw:
      unpack_lz4_block(packed, size, into);
      break;
    default:
      throw data_error(
          fmt::format("is compressed by {}, which is not read; write it with Zstandard or Snappy",
                      names[std::size_t(codec)]));
  }
  if (into.size() != size)
    throw data_error(fmt::format("claims {} uncompressed bytes, but has {}", size, into.size()));
}

/// The parts of a page of data.
struct parquet_parts {
  std::string unpacked;
  std::string_view repetition, definition, values;

  parquet_parts(parquet_column const& column, parquet_codec codec, parquet_page_header const& header,
                std::string_view bytes, bool with_values) {
    if (header.type == parquet_page_header::kind::data) {
      unpack(codec, bytes, header.unpacked, unpacked);
      byte_cursor at(unpacked);
      repetition = levels(at, header.repetition, column.list_definition > 0 ? 1 : 0, header.values);
      definition = levels(at, header.definition, column.most_definition, header.values);
      values = at.left();
      return;
    }
    byte_cursor at(bytes);
    repetition = at.take(header.repetition_size);
    definition = at.take(header.definition_size);
    std::uint64_t const before = std::uint64_t{header.repetition_size} + header.definition_size;
    if (before > header.unpacked) throw data_error("its levels are longer than the page");
    values = at.left();
    if (!with_values || values.empty()) return;
    unpack(header.packed ? codec : parquet_codec::none, values, header.unpacked - std::size_t(before),
           unpacked);
    values = unpacked;
  }

 private:
  static std::string_view levels(byte_cursor& at, parquet_encoding encoding, std::uint32_t most,
                                 std::size_t count) {
    if (most == 0) return {};
    if (encoding == parquet_encoding::rle) return at.take(at.number<std::uint32_t>());
    if (encoding != parquet_encoding::bit_packed)
      throw data_error(fmt::format("levels in encoding {}", int(encoding)));
    return at.take((count * std::size_t(std::bit_width(most)) + 7) / 8);
  }
};

inline std::vector<std::uint32_t> read_levels(std::string_view bytes, parquet_encoding encoding,
                                              std::uint32_t most, std::size_t count) {
  std::vector<std::uint32_t> all;
  if (most == 0) return all;
  auto const width = unsigned(std::bit_width(most));
  if (encoding == parquet_encoding::rle) {
    byte_cursor at(bytes);
    read_parquet_runs(at, width, count, all);
  } else {  // packed with the most significant bits first
    for (std::size_t i = 0, bit = 0; i < count; ++i) {
      std::uint32_t n = 0;
      for (unsigned b = 0; b < width; ++b, ++bit)
        n = n << 1 | (static_cast<unsigned char>(bytes[bit / 8]) >> (7 - bit % 8) & 1u);
      all.push_back(n);
    }
  }
  if (std::ranges::any_of(all, [&](std::uint32_t n) { return n > most; }))
    throw data_error(fmt::format("has a level above {}", most));
  return all;
}

EDL_INLINE parquet_page read_parquet_page(parquet_column const& column, parquet_codec codec,
                                          parquet_page_header const& header, std::string_view bytes,
                                          std::shared_ptr<parquet_values const> const& dictionary) {
  parquet_parts const parts(column, codec, header, bytes, true);
  parquet_page page;
  page.count = header.values;
  bool const list = column.list_definition > 0;
  auto const definition =
      read_levels(parts.definition, header.definition, column.most_definition, header.values);
  auto const present = std::size_t(std::ranges::count(definition, column.most_definition)) +
                       (column.most_definition == 0 ? header.values : 0);
  if (present < header.values) {
    page.slots.reserve(header.values);
    std::uint32_t next = 0;
    for (std::uint32_t const d : definition)
      page.slots.push_back(d == column.most_definition            ? next++
                           : !list || d >= column.list_definition ? parquet_page::null
                           : d + 1 == column.list_definition      ? parquet_page::no_element
                                                                  : parquet_page::no_list);
  }
  if (list) {
    auto const repetition = read_levels(parts.repetition, header.repetition, 1, header.values);
    for (std::uint32_t i = 0; i < header.values; ++i)
      if (repetition[i] == 0) page.rows.push_back(i);
  }
  byte_cursor at(parts.values);
  using enum parquet_encoding;
  if (header.encoding != plain_dictionary && header.encoding != rle_dictionary) {
    auto own = std::make_shared<parquet_values>();
    if (present > 0) read_own_values(column, header.encoding, at, present, *own);
    check_decimals(column, *own);
    page.values = std::move(own);
    return page;
  }
  if (!dictionary) throw data_error("refers to a dictionary, but none precedes it");
  page.values = dictionary;
  if (present == 0) return page;
  unsigned const width = at.number<std::uint8_t>();
  read_parquet_runs(at, width, present, page.indices);
  std::size_t const most = dictionary->size();
  if (auto const wrong = std::ranges::find_if(page.indices, [&](std::uint32_t i) { return i >= most; });
      wrong != page.indices.end())
    throw data_error(fmt::format("refers to value {} of a dictionary of {}", *wrong, most));
  return page;
}

EDL_INLINE parquet_values read_parquet_dictionary(parquet_column const& column, parquet_codec codec,
                                                  parquet_page_header const& header, std::string_view bytes) {
  using enum parquet_encoding;
  if (header.encoding != plain && header.encoding != plain_dictionary)
    throw data_error(fmt::format("a dictionary in encoding {}", int(header.encoding)));
  std::string unpacked;
  unpack(codec, bytes, header.unpacked, unpacked);
  byte_cursor at(unpacked);
  parquet_values all;
  read_plain(column, at, header.values, all);
  check_decimals(column, all);
  return all;
}

EDL_INLINE parquet_rows count_parquet_rows(parquet_column const& column, parquet_codec codec,
                                           parquet_page_header const& header, std::string_view bytes) {
  parquet_parts const parts(column, codec, header, bytes, false);
  auto const repetition = read_levels(parts.repetition, header.repetition, 1, header.values);
  auto const begin = std::ranges::find(repetition, 0u);
  return {std::size_t(begin - repetition.begin()), std::size_t(std::count(begin, repetition.end(), 0u))};
}

}  // namespace edl::data::detail
