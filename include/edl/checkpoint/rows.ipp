// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "edl/checkpoint/layout_digest.hpp"
#include "edl/checkpoint/part.hpp"
#include "edl/checkpoint/rows.hpp"
#include "edl/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {
namespace detail {

inline constexpr std::size_t rows_at_a_time = std::size_t{1} << 20;  // bytes

EDL_INLINE std::size_t row_bytes(int width, std::size_t slots) {
  return sizeof(sparse::row_header) + std::size_t(width) * (1 + slots) * sizeof(float);
}

/// What a file says of one table.
struct stored_table {
  tensor const* of = nullptr;
  std::vector<std::uint64_t> rows;  // of each hash slot
};

EDL_INLINE std::vector<stored_table> stored_tables(opened_part const& part, parameter_layout const& layout,
                                                   std::span<std::string const> slot_names) {
  part_facts const facts(part.file);
  auto const fail = [&](std::string const& what) {
    throw error(fmt::format("{} is of another model: {}", part.file.path(), what));
  };
  if (facts.json("slots") != nlohmann::json(std::vector<std::string>(slot_names.begin(), slot_names.end())))
    fail(fmt::format("its optimiser has the slots {}, the model's has [{}]", shown(facts.text("slots")),
                     fmt::join(slot_names, ", ")));
  auto const list = facts.json("tables");
  if (!list.is_array() || list.size() != layout.tables.size()) fail("it has other tables");
  std::vector<stored_table> tables;
  for (std::size_t i = 0; i < list.size(); ++i) {
    table_shape const& shape = layout.tables[i];
    auto const& entry = list[i];
    for (char const* field : {"name", "width", "rows"})
      if (!entry.is_object() || !entry.contains(field)) facts.fail("tables");
    if (entry["name"] != shape.name || entry["width"] != shape.width)
      fail(fmt::format("it has table {} of width {} where the model has '{}' of width {}",
                       shown(entry["name"].dump()), shown(entry["width"].dump()), shape.name, shape.width));
    if (!entry["rows"].is_array() || entry["rows"].size() != part.elements.size()) facts.fail("tables");
    stored_table t{.of = part.file.find("tables/" + shape.name), .rows = {}};
    std::uint64_t all = 0;
    for (auto const& n : entry["rows"]) {
      t.rows.push_back(facts.number(n, "tables"));
      if (t.rows.back() > part.file.size()) facts.fail("tables");
      all += t.rows.back();
    }
    std::vector<std::uint64_t> const dims{all, row_bytes(shape.width, slot_names.size())};
    if (!t.of || t.of->dtype != "U8" || t.of->dims != dims) facts.fail("tables");
    tables.push_back(std::move(t));
  }
  return tables;
}

/// Reads the rows of hash slots [wanted.first, wanted.last) of one table, in order.
EDL_INLINE void read_table(opened_part const& part, stored_table const& t, element_range wanted,
                           std::function<void(sparse::row_header const&, view<float>)> const& put) {
  std::size_t const bytes = std::size_t(t.of->dims[1]);
  std::vector<std::byte> buffer(std::max(bytes, rows_at_a_time / bytes * bytes));
  std::vector<float> values((bytes - sizeof(sparse::row_header)) / sizeof(float));
  auto const count = [&](std::size_t first, std::size_t last) {
    auto const from = t.rows.begin() - std::ptrdiff_t(part.elements.first);
    return std::accumulate(from + std::ptrdiff_t(first), from + std::ptrdiff_t(last), std::uint64_t{0});
  };
  std::uint64_t at = count(part.elements.first, wanted.first);  // of the row to be read next
  std::uint64_t unread = count(wanted.first, wanted.last), left = 0;
  std::size_t next = 0;  // of the `left` rows in the buffer
  for (std::size_t s = wanted.first; s < wanted.last; ++s)
    for (std::uint64_t i = 0; i < t.rows[s - part.elements.first]; ++i) {
      if (left == 0) {
        left = std::min<std::uint64_t>(unread, buffer.size() / bytes);
        part.file.read(*t.of, at * bytes, std::span(buffer).first(std::size_t(left) * bytes));
        at += left, unread -= left, next = 0;
      }
      sparse::row_header header;
      std::memcpy(&header, &buffer[next], sizeof header);
      std::memcpy(values.data(), &buffer[next + sizeof header], values.size() * sizeof(float));
      if (sparse::id_hash(header.id).slot() != s)
        throw error(
            fmt::format("{} is damaged: id {} stands in hash slot {}", part.file.path(), header.id, s));
      put(header, values);
      next += bytes, --left;
    }
}

}  // namespace detail

EDL_INLINE bool is_rows(std::string_view name) { return name.starts_with("rows-"); }

EDL_INLINE manifest::file write_rows(std::string const& path, parameter_layout const& layout,
                                     rows_part const& part) {
  std::string const where =
      fmt::format("cannot write the rows of server {} of {} into {}", part.server, part.servers, path);
  if (part.server >= part.servers) throw error(where + ": there is no such server");
  if (part.tables.size() != layout.tables.size()) throw error(where + ": the model has other tables");
  auto described = nlohmann::json::array();
  std::vector<tensor_source> tensors;
  for (std::size_t i = 0; i < part.tables.size(); ++i) {
    sparse::table_cut const& cut = *part.tables[i];
    std::vector<std::uint64_t> rows;
    std::uint64_t all = 0;
    for (std::size_t s = part.slots.first; s < part.slots.last; ++s)
      all += rows.emplace_back(cut.size(std::uint32_t(s)));
    if (all != cut.size()) throw error(where + ": it has rows of other hash slots");
    std::size_t const bytes = detail::row_bytes(layout.tables[i].width, part.slot_names.size());
    described.push_back(
        {{"name", layout.tables[i].name}, {"width", layout.tables[i].width}, {"rows", std::move(rows)}});
    tensors.push_back({.name = "tables/" + layout.tables[i].name,
                       .dtype = "U8",
                       .dims = {all, bytes},
                       .data = {},
                       .stream = [&part, &cut, bytes](tensor_source::sink const& to) {
                         std::vector<std::byte> buffer;
                         buffer.reserve(detail::rows_at_a_time + bytes);
                         for (std::size_t s = part.slots.first; s < part.slots.last; ++s) {
                           // Pushes of these rows wait for the visit, and not for the disk.
                           cut.for_each(std::uint32_t(s), [&](auto const& header, view<float> values) {
                             auto const head = std::as_bytes(std::span(&header, 1));
                             auto const tail = std::as_bytes(values);
                             buffer.insert(buffer.end(), head.begin(), head.end());
                             buffer.insert(buffer.end(), tail.begin(), tail.end());
                           });
                           if (buffer.size() < detail::rows_at_a_time && s + 1 < part.slots.last) continue;
                           to(buffer);
                           buffer.clear();
                         }
                       }});
  }
  std::map<std::string, std::string> metadata{
      {"edl", detail::rows_format},
      {"server", std::to_string(part.server)},
      {"servers", std::to_string(part.servers)},
      {"version", std::to_string(part.version)},
      {"first", std::to_string(part.slots.first)},
      {"last", std::to_string(part.slots.last)},
      {"layout_digest", fmt::format("{:016x}", layout_digest(layout))},
      {"segments", detail::to_json(part.segments, part.slots, where)}};
  try {
    metadata["tables"] = described.dump();
    metadata["slots"] =
        nlohmann::json(std::vector<std::string>(part.slot_names.begin(), part.slot_names.end())).dump();
  } catch (nlohmann::json::type_error const&) {
    throw error(where + ": the name of a table or slot is not UTF-8");
  }
  manifest::file written{.name = detail::new_part_name("rows", part.server, part.servers),
                         .version = part.version,
                         .ledger = detail::common_ledger(part.segments)};
  durable_file file(path + "/" + written.name);
  write_safetensors(file, tensors, metadata);
  file.commit();
  written.bytes = file.size();
  written.crc32 = file.crc32();
  return written;
}

EDL_INLINE std::vector<segment> read_rows(
    std::string const& path, parameter_layout const& layout, element_range slots,
    std::span<std::string const> slot_names,
    std::function<void(std::size_t, sparse::row_header const&, view<float>)> const& put) {
  std::vector<segment> segments;
  std::size_t at = 0;
  for (auto const& listed : read_manifest(path).files) {
    if (!is_rows(listed.name)) continue;
    auto const part = detail::open_part(path, listed, detail::rows_format);
    if (part.elements.first != at)
      throw error(
          fmt::format("cannot read {}: hash slot {} is in none of its files, or in several", path, at));
    at = part.elements.last;
    element_range const both{std::max(part.elements.first, slots.first),
                             std::min(part.elements.last, slots.last)};
    if (both.first >= both.last) continue;
    detail::check_content(part.file, listed);
    auto const tables = detail::stored_tables(part, layout, slot_names);
    for (std::size_t t = 0; t < tables.size(); ++t)
      detail::read_table(part, tables[t], both, [&](sparse::row_header const& header, view<float> values) {
        put(t, header, values);
      });
    for (segment& s : detail::segments_of(part)) {
      element_range const clipped{std::max(s.elements.first, both.first),
                                  std::min(s.elements.last, both.last)};
      if (clipped.first >= clipped.last) continue;
      if (!segments.empty() && segments.back().steps == s.steps && segments.back().ledger == s.ledger)
        segments.back().elements.last = clipped.last;
      else
        segments.push_back({clipped, s.steps, std::move(s.ledger)});
    }
  }
  if (at != sparse::hash_slots)
    throw error(fmt::format("cannot read {}: the files of its tables end at hash slot {} of {}", path, at,
                            sparse::hash_slots));
  return segments;
}

}  // namespace edl::checkpoint
