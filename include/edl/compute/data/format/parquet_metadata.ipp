// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "edl/compute/data/format/parquet_metadata.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data::detail {

inline constexpr std::uint64_t parquet_metadata_limit = 256u << 20;
inline constexpr std::size_t parquet_columns = 16'384, parquet_depth = 32, parquet_name = 4'096;

/// A node of the schema: a column, or a group of columns.
struct parquet_node {
  int type = -1, width = 0, repetition = 0, converted = -1, scale = 0, precision = 0, bits = 0;
  std::string name;
  std::uint32_t children = 0;
  int logical = 0;  // the union's field
  bool utc = false, has_sign = true;
  int unit = 0;  // 1 ms, 2 µs, 3 ns
};

namespace parquet {
enum repetition { required, optional, repeated };
enum logical {
  text = 1,
  map,
  list,
  enumeration,
  decimal,
  date,
  time,
  timestamp,
  integer = 10,
  unknown,
  json,
  bson,
  uuid,
  float16
};
}  // namespace parquet

inline parquet_node parse_parquet_node(thrift_reader& in) {
  using type = thrift_reader::type;
  parquet_node n;
  auto const logical = [&](std::int64_t id, type what) {
    in.need(what, type::structure);
    n.logical = int(std::clamp<std::int64_t>(id, 0, 100));
    in.fields([&](std::int64_t field, type t) {
      switch (n.logical) {
        case parquet::decimal:
          return field == 1 ? in.number(t, n.scale) : field == 2 && in.number(t, n.precision);
        case parquet::time:
        case parquet::timestamp:
          if (field == 1) return in.flag(t, n.utc);
          if (field != 2) return false;
          in.fields([&](std::int64_t unit, type) {
            return n.unit = int(std::clamp<std::int64_t>(unit, 0, 9)), false;
          });
          return true;
        case parquet::integer:
          return field == 1 ? in.number(t, n.bits) : field == 2 && in.flag(t, n.has_sign);
        default:
          return false;
      }
    });
    return true;
  };
  in.fields([&](std::int64_t id, type what) {
    switch (id) {
      case 1:
        return in.number(what, n.type);
      case 2:
        return in.number(what, n.width);
      case 3:
        return in.number(what, n.repetition);
      case 4:
        return in.text(what, n.name);
      case 5:
        return in.number(what, n.children);
      case 6:
        return in.number(what, n.converted);
      case 7:
        return in.number(what, n.scale);
      case 8:
        return in.number(what, n.precision);
      case 10:
        in.need(what, type::structure);
        in.fields(logical);
        return true;
      default:
        return false;
    }
  });
  // Translates ConvertedType, which older writers use, to the newer terms (LogicalTypes.md).
  struct newer {
    int logical = 0, unit = 0;
    bool is_unsigned = false;
  };
  using namespace parquet;
  static constexpr newer by_converted[]{{text},
                                        {map},
                                        {map},
                                        {list},
                                        {enumeration},
                                        {decimal},
                                        {date},
                                        {time, 1},
                                        {time, 2},
                                        {timestamp, 1},
                                        {timestamp, 2},
                                        {integer, 0, true},
                                        {integer, 0, true},
                                        {integer, 0, true},
                                        {integer, 0, true},
                                        {integer},
                                        {integer},
                                        {integer},
                                        {integer},
                                        {json},
                                        {bson}};
  if (n.logical == 0 && n.converted >= 0 && n.converted < int(std::size(by_converted))) {
    auto const& as = by_converted[n.converted];
    n.logical = as.logical, n.unit = as.unit, n.has_sign = !as.is_unsigned;
  }
  return n;
}

/// Converts the schema's nodes, in depth-first order, to columns.
class parquet_schema {
 public:
  parquet_schema(std::vector<parquet_node> nodes, parquet_metadata& into)
      : nodes_(std::move(nodes)), into_(into) {
    if (nodes_.empty()) throw data_error("its schema is empty");
    auto const root = next();
    for (std::uint32_t i = 0; i < root.children; ++i) node({});
    if (at_ != nodes_.size()) throw data_error("its schema has nodes that belong to none");
    for (auto const& c : into_.columns)
      if (!names_.insert(c.name).second)
        throw data_error(fmt::format("two columns have the name '{}'", edl::printable(c.name, 64)));
  }

  std::size_t leaves() const { return leaves_; }

 private:
  struct place {
    std::string path;
    std::uint32_t definition = 0, list = 0;
    int depth = 0;
    bool unnamed = false;       // the level between a list and its elements
    char const* out = nullptr;  // why columns below are left out
  };

  parquet_node const& next() {
    if (at_ == nodes_.size()) throw data_error("its schema ends within a group");
    return nodes_[at_++];
  }

  void node(place p) {
    parquet_node const& n = next();
    if (++p.depth > int(parquet_depth)) throw data_error("its schema has too many groups in one another");
    if (!std::exchange(p.unnamed, false)) p.path += (p.path.empty() ? "" : ".") + n.name;
    // Each column's name contains all groups around it, so many columns would multiply a long path.
    if (p.path.size() > parquet_name)
      throw data_error(fmt::format("the name of column '{}' has more than {} bytes",
                                   edl::printable(p.path, 64), parquet_name));
    bool const many = n.repetition == parquet::repeated, group = n.children > 0;
    if (n.repetition != parquet::required) ++p.definition;
    if (many && p.list > 0) p.out = "it is a list of lists";
    if (many) p.list = p.definition;
    if (!group) return leaf(n, std::move(p));
    if (n.logical == parquet::map) p.out = "it is a map";
    if (p.list > 0 && n.children > 1 && !p.out) p.out = "it is a list of objects";
    // A list is a group of one repeated group of one element, or of one repeated element (LogicalTypes.md).
    p.unnamed = n.children == 1 && (n.logical == parquet::list || n.logical == parquet::map || many);
    for (std::uint32_t i = 0; i < n.children; ++i) node(p);
  }

  void leaf(parquet_node const& n, place p) {
    parquet_column c{.name = std::move(p.path), .leaf = leaves_++};
    c.most_definition = p.definition;
    c.list_definition = p.list;
    char const* const why = p.out ? p.out : fill(n, c);
    if (why)
      into_.notes.push_back(fmt::format("column '{}' is left out: {}", edl::printable(c.name, 64), why));
    else
      into_.columns.push_back(std::move(c));
    if (leaves_ > parquet_columns) throw data_error(fmt::format("has more than {} columns", parquet_columns));
  }

  /// The reason why the column cannot be read; null: it can.
  static char const* fill(parquet_node const& n, parquet_column& c) {
    using enum parquet_type;
    if (n.type < 0 || n.type > int(fixed_bytes)) return "its type is unknown";
    c.type = parquet_type(n.type);
    c.width = std::uint32_t(c.type == fixed_bytes ? n.width : c.type == int96 ? 12 : 0);
    if (c.type == fixed_bytes && (c.width == 0 || c.width > parquet_page_limit))
      return "its values have no bytes";
    c.utc = n.utc;
    constexpr char const* misfit = "its logical type does not go with its physical type";
    bool const whole = c.type == int32 || c.type == int64;
    constexpr int interval = 21;
    if (n.converted == interval && n.logical == 0) return "it is an interval";
    switch (n.logical) {
      case parquet::decimal:
        c.meaning = parquet_meaning::decimal;
        c.digits = n.scale;
        if (n.scale > 76 || (c.type == fixed_bytes && c.width > parquet_decimal_bytes))
          return "its decimals have more than 76 digits";
        return whole || c.type == bytes || c.type == fixed_bytes ? nullptr : misfit;
      case parquet::date:
        c.meaning = parquet_meaning::date;
        return c.type == int32 ? nullptr : misfit;
      case parquet::time:
      case parquet::timestamp:
        c.meaning = n.logical == parquet::time ? parquet_meaning::time : parquet_meaning::timestamp;
        c.digits = 3 * n.unit;
        if (n.unit < 1 || n.unit > 3) return "its unit of time is unknown";
        return whole ? nullptr : misfit;
      case parquet::integer:
        if (!n.has_sign) c.meaning = parquet_meaning::is_unsigned;
        return whole ? nullptr : misfit;
      case parquet::uuid:
        c.meaning = parquet_meaning::uuid;
        return c.width == 16 ? nullptr : misfit;
      case parquet::float16:
        c.meaning = parquet_meaning::float16;
        return c.width == 2 ? nullptr : misfit;
      default:
        if (c.type == int96) c.meaning = parquet_meaning::timestamp, c.digits = 9;
        return nullptr;
    }
  }

  std::vector<parquet_node> nodes_;
  parquet_metadata& into_;
  std::size_t at_ = 0, leaves_ = 0;
  std::set<std::string> names_;
};

/// Parses a column of a row group. Its place is 0 if it is encrypted.
inline parquet_chunk parse_parquet_chunk(thrift_reader& in, std::uint64_t end) {
  using type = thrift_reader::type;
  parquet_chunk c;
  std::uint64_t first = 0, dictionary = 0, size = 0;
  std::string elsewhere;
  bool present = false, encrypted = false;
  int codec = 0;
  in.fields([&](std::int64_t id, type what) {
    if (id == 1) return in.text(what, elsewhere);
    encrypted = encrypted || id == 8 || id == 9;
    if (id != 3) return false;
    in.need(what, type::structure);
    present = true;
    in.fields([&](std::int64_t field, type t) {
      switch (field) {
        case 4:
          return in.number(t, codec);
        case 5:
          return in.number(t, c.values);
        case 7:
          return in.number(t, size);
        case 9:
          return in.number(t, first);
        case 11:
          return in.number(t, dictionary);
        default:
          return false;
      }
    });
    return true;
  });
  if (encrypted) throw data_error("is encrypted, which is not read");
  if (!elsewhere.empty()) throw data_error("its columns lie in other files, which is not read");
  if (!present)
    throw data_error(fmt::format("a column at byte {} of its metadata has no pages", in.offset()));
  c.codec = codec > 7 ? parquet_codec::lzo : parquet_codec(codec);
  c.begin = dictionary > 0 && dictionary < first ? dictionary : first;
  if (c.begin < 4 || c.begin > end || size > end - c.begin)
    throw data_error(fmt::format("the pages of a column lie in [{}, {} + {}), its columns end at byte {}",
                                 c.begin, c.begin, size, end));
  c.end = c.begin + size;
  return c;
}

EDL_INLINE parquet_metadata parse_parquet_metadata(std::string_view bytes, std::uint64_t end) {
  using type = thrift_reader::type;
  thrift_reader in(bytes);
  parquet_metadata m;
  std::vector<parquet_node> nodes;
  std::uint64_t rows = 0;
  in.fields([&](std::int64_t id, type what) {
    switch (id) {
      case 2:
        in.structs(what, [&] {
          if (nodes.size() > parquet_columns * parquet_depth)
            throw data_error(fmt::format("has more than {} columns", parquet_columns));
          nodes.push_back(parse_parquet_node(in));
        });
        return true;
      case 3:
        return in.number(what, rows);
      case 4:
        in.structs(what, [&] {
          parquet_metadata::row_group g{.first = m.rows, .rows = 0, .chunks = {}};
          in.fields([&](std::int64_t field, type t) {
            if (field == 1) in.structs(t, [&] { g.chunks.push_back(parse_parquet_chunk(in, end)); });
            return field == 1 || (field == 3 && in.number(t, g.rows));
          });
          if (g.rows > std::uint64_t(std::numeric_limits<std::int64_t>::max()) - m.rows)
            throw data_error(fmt::format("row group {} claims {} rows", m.groups.size(), g.rows));
          m.rows += g.rows;
          m.groups.push_back(std::move(g));
        });
        return true;
      case 8:
        throw data_error("is encrypted, which is not read");
      default:
        return false;
    }
  });
  if (rows != m.rows)
    throw data_error(fmt::format("claims {} rows, but its row groups have {} together", rows, m.rows));
  std::size_t const leaves = parquet_schema(std::move(nodes), m).leaves();
  for (std::size_t i = 0; i < m.groups.size(); ++i) {
    auto const& g = m.groups[i];
    if (g.chunks.size() != leaves)
      throw data_error(fmt::format("row group {} has {} columns, the schema {}", i, g.chunks.size(), leaves));
    for (parquet_column const& c : m.columns) {
      std::uint64_t const values = g.chunks[c.leaf].values;
      if (c.list_definition == 0 ? values != g.rows : values < g.rows)
        throw data_error(fmt::format("row group {}, column '{}': claims {} values for {} rows", i,
                                     edl::printable(c.name, 64), values, g.rows));
    }
  }
  return m;
}

EDL_INLINE parquet_metadata read_parquet_metadata(input_file const& file) try {
  constexpr std::size_t mark = 4, tail = 8;  // a number and the mark
  char last[tail];
  if (file.size() < mark + tail) throw data_error("is too short for a Parquet file");
  file.read(file.size() - tail, last, tail);
  auto const ends = std::string_view(last, tail).substr(4);
  if (ends == "PARE") throw data_error("is encrypted, which is not read");
  if (ends != "PAR1") throw data_error("does not end as a Parquet file, in PAR1; it may be cut off");
  std::uint32_t size;
  std::memcpy(&size, last, sizeof size);
  if (size > file.size() - mark - tail || size > parquet_metadata_limit)
    throw data_error(fmt::format("claims {} bytes of metadata at its end", size));
  std::string bytes(size, '\0');
  std::uint64_t const at = file.size() - tail - size;
  file.read(at, bytes.data(), size);
  try {
    return parse_parquet_metadata(bytes, at);
  } catch (data_error const& e) {
    throw data_error(fmt::format("{} (metadata from byte {} on)", e.what(), at));
  }
} catch (changed_error const&) {
  throw;
} catch (unread_error const&) {
  throw;
} catch (data_error const& e) {
  throw data_error(fmt::format("{}: {}", file.path(), e.what()));
}

}  // namespace edl::data::detail
