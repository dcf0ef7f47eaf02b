// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/compression.hpp"

// Parquet files by hand, for what no writer at hand writes.
namespace parquet_file {

/// Thrift's compact protocol.
class compact {
 public:
  std::string bytes;

  compact& number(int id, std::int64_t value, int type = 6) {
    head(id, type);
    varint(std::uint64_t(value) << 1 ^ std::uint64_t(value >> 63));
    return *this;
  }
  compact& text(int id, std::string_view value) {
    head(id, 8);
    varint(value.size());
    bytes += value;
    return *this;
  }
  compact& flag(int id, bool value) {
    head(id, value ? 1 : 2);
    return *this;
  }
  compact& list(int id, std::vector<compact> const& of) {
    head(id, 9);
    bytes += char(0xFC);
    varint(of.size());
    for (compact const& c : of) bytes += c.bytes + '\0';
    return *this;
  }
  compact& structure(int id, compact const& of) {
    head(id, 12);
    bytes += of.bytes + '\0';
    return *this;
  }

 private:
  void head(int id, int type) {
    bytes += char((id - last_) << 4 | type);
    last_ = id;
  }
  void varint(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes += char(n | 0x80);
    bytes += char(n);
  }
  int last_ = 0;
};

template <class... T>
std::string raw(T... values) {
  std::string all;
  (..., all.append(reinterpret_cast<char const*>(&values), sizeof values));
  return all;
}

/// A page of version 1 with its header. `encoding`: 0 plain, 2 or 8 a dictionary's.
inline std::string page(std::string const& body, int values, int encoding = 0, bool checksum = false,
                        int levels = 3) {
  compact h;
  h.number(1, 0, 5).number(2, std::int64_t(body.size()), 5).number(3, std::int64_t(body.size()), 5);
  if (checksum) h.number(4, std::int32_t(edl::data::detail::crc32(body)), 5);
  h.structure(
      5, compact().number(1, values, 5).number(2, encoding, 5).number(3, levels, 5).number(4, levels, 5));
  return h.bytes + '\0' + body;
}

inline std::string dictionary(std::string const& body, int values) {
  compact h;
  h.number(1, 2, 5).number(2, std::int64_t(body.size()), 5).number(3, std::int64_t(body.size()), 5);
  h.structure(7, compact().number(1, values, 5).number(2, 0, 5));
  return h.bytes + '\0' + body;
}

/// Levels of version 1: their size, then one run of eight packed ones for each eight.
inline std::string levels(std::vector<int> const& of) {
  std::string bits((of.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < of.size(); ++i) bits[i / 8] = char(bits[i / 8] | of[i] << (i % 8));
  std::string const runs = char(bits.size() << 1 | 1) + bits;
  return raw(std::uint32_t(runs.size())) + runs;
}

struct column {
  compact node;                    ///< of the schema
  std::vector<std::string> pages;  ///< in each row group
  std::vector<int> values;         ///< likewise
  int codec = 0;
};

inline compact node(std::string_view name, int type, int repetition = 0) {
  return compact().number(1, type, 5).number(3, repetition, 5).text(4, name);
}

/// `rows` of each row group. `nodes`: of the schema, instead of the columns' own.
inline std::string file(std::vector<column> const& columns, std::vector<int> const& rows,
                        std::vector<compact> nodes = {}) {
  std::string bytes = "PAR1";
  std::vector<compact> groups;
  std::int64_t all = 0;
  for (std::size_t g = 0; g < rows.size(); ++g) {
    std::vector<compact> chunks;
    for (column const& c : columns) {
      compact meta;
      meta.number(4, c.codec, 5).number(5, c.values[g]).number(7, std::int64_t(c.pages[g].size()));
      meta.number(9, std::int64_t(bytes.size()));
      chunks.push_back(compact().structure(3, meta));
      bytes += c.pages[g];
    }
    groups.push_back(compact().list(1, chunks).number(3, rows[g]));
    all += rows[g];
  }
  if (nodes.empty()) {
    nodes.push_back(compact().text(4, "root").number(5, std::int64_t(columns.size()), 5));
    for (column const& c : columns) nodes.push_back(c.node);
  }
  auto const metadata = compact().number(1, 1, 5).list(2, nodes).number(3, all).list(4, groups).bytes + '\0';
  return bytes + metadata + raw(std::uint32_t(metadata.size())) + "PAR1";
}

}  // namespace parquet_file
