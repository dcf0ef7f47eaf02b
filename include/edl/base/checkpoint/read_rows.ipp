// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "edl/base/checkpoint/part.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::checkpoint {
namespace detail {

/// Rows of a table in a file, or candidates.
struct stored_rows {
  tensor const* rows = nullptr;
  std::vector<std::uint64_t> counts;  // of each hash slot
};

/// A file's description of one table.
struct stored_table {
  stored_rows rows, candidates;
  tensor const* removed = nullptr;
};

EDL_INLINE stored_rows rows_in(opened_part const& part, std::string const& name, nlohmann::json const& counts,
                               std::size_t row_bytes) {
  part_facts const facts(part.file);
  if (!counts.is_array() || (!counts.empty() && counts.size() != part.elements.size())) facts.fail("tables");
  stored_rows r{.rows = part.file.find(name), .counts = {}};
  std::uint64_t all = 0;
  for (auto const& n : counts) {
    r.counts.push_back(facts.number(n, "tables"));
    if (r.counts.back() > part.file.size()) facts.fail("tables");
    all += r.counts.back();
  }
  r.counts.resize(part.elements.size());
  if (!r.rows || r.rows->dtype != "U8" || r.rows->dims != std::vector<std::uint64_t>{all, row_bytes})
    facts.fail("tables");
  return r;
}

EDL_INLINE std::vector<stored_table> stored_tables(opened_part const& part, parameter_layout const& layout,
                                                   std::span<std::string const> slot_names) {
  part_facts const facts(part.file);
  auto const fail = [&](std::string const& what) {
    throw error(fmt::format("{} belongs to another model: {}", part.file.path(), what));
  };
  if (facts.json("slots") != nlohmann::json(std::vector<std::string>(slot_names.begin(), slot_names.end())))
    fail(fmt::format("its optimiser has the slots {}, but the model's has [{}]", shown(facts.text("slots")),
                     fmt::join(slot_names, ", ")));
  auto const list = facts.json("tables");
  if (!list.is_array() || list.size() != layout.tables.size()) fail("it has other tables");
  std::vector<stored_table> tables;
  for (std::size_t i = 0; i < list.size(); ++i) {
    table_shape const& shape = layout.tables[i];
    auto const& entry = list[i];
    for (char const* field : {"name", "width", "rows", "candidates"})
      if (!entry.is_object() || !entry.contains(field)) facts.fail("tables");
    if (entry["name"] != shape.name || entry["width"] != shape.width)
      fail(fmt::format("it has table {} of width {} where the model has '{}' of width {}",
                       shown(entry["name"].dump()), shown(entry["width"].dump()), shape.name, shape.width));
    std::string const name = "tables/" + shape.name;
    stored_table t{
        .rows = rows_in(part, name, entry["rows"], row_bytes(shape.width, slot_names.size())),
        .candidates = rows_in(part, name + "/candidates", entry["candidates"], sizeof(sparse::row_header)),
        .removed = part.file.find(name + "/removed")};
    if (t.removed && (t.removed->dtype != "U64" || t.removed->dims.size() != 1)) facts.fail("tables");
    tables.push_back(std::move(t));
  }
  return tables;
}

/// Reads the rows of hash slots [wanted.first, wanted.last), in order.
EDL_INLINE void read_table(opened_part const& part, stored_rows const& t, element_range wanted,
                           std::function<void(sparse::row_header const&, view<float>)> const& put) {
  invariant(part.elements.first <= wanted.first && wanted.last <= part.elements.last,
            "rows are read only from hash slots of the file");
  invariant(t.counts.size() == part.elements.size(), "each hash slot of a file has its count");
  std::size_t const bytes = std::size_t(t.rows->dims[1]);
  std::vector<std::byte> buffer(std::max(bytes, rows_at_a_time / bytes * bytes));
  std::vector<float> values((bytes - sizeof(sparse::row_header)) / sizeof(float));
  auto const count = [&](std::size_t first, std::size_t last) {
    auto const from = t.counts.begin() - std::ptrdiff_t(part.elements.first);
    return std::accumulate(from + std::ptrdiff_t(first), from + std::ptrdiff_t(last), std::uint64_t{0});
  };
  std::uint64_t at = count(part.elements.first, wanted.first);  // of the row to be read next
  std::uint64_t unread = count(wanted.first, wanted.last), left = 0;
  std::size_t next = 0;  // of the `left` rows in the buffer
  for (std::size_t s = wanted.first; s < wanted.last; ++s)
    for (std::uint64_t i = 0; i < t.counts[s - part.elements.first]; ++i) {
      if (left == 0) {
        left = std::min<std::uint64_t>(unread, buffer.size() / bytes);
        part.file.read(*t.rows, at * bytes, std::span(buffer).first(std::size_t(left) * bytes));
        at += left, unread -= left, next = 0;
      }
      sparse::row_header header;
      std::memcpy(&header, &buffer[next], sizeof header);
      if (!values.empty())
        std::memcpy(values.data(), &buffer[next + sizeof header], values.size() * sizeof(float));
      if (sparse::id_hash(header.id).slot() != s)
        throw error(fmt::format("{} is damaged: id {} is in hash slot {}", part.file.path(), header.id, s));
      put(header, values);
      next += bytes, --left;
    }
  invariant(left == 0 && unread == 0, "all requested rows have been read");
}

/// Calls remove(id) for the removed ids of these hash slots.
EDL_INLINE void read_removed(opened_part const& part, tensor const& of, element_range wanted,
                             std::function<void(std::uint64_t)> const& remove) {
  std::uint64_t const all = of.dims[0];
  std::vector<std::uint64_t> ids(rows_at_a_time / sizeof(std::uint64_t));
  for (std::uint64_t at = 0; at < all;) {
    auto const some = std::span(ids).first(std::size_t(std::min<std::uint64_t>(ids.size(), all - at)));
    part.file.read(of, at * sizeof(std::uint64_t), std::as_writable_bytes(some));
    for (std::uint64_t id : some)
      if (auto const slot = sparse::id_hash(id).slot(); slot >= wanted.first && slot < wanted.last)
        remove(id);
    at += some.size();
  }
}

EDL_INLINE void append_clipped(std::vector<segment>& to, std::vector<segment> from, element_range wanted) {
  for (segment& s : from) {
    element_range const clipped = overlap(s.elements, wanted);
    if (clipped.size() == 0) continue;
    if (!to.empty() && to.back().steps == s.steps && to.back().ledger == s.ledger)
      to.back().elements.last = clipped.last;
    else
      to.push_back({clipped, s.steps, std::move(s.ledger)});
  }
}

}  // namespace detail

EDL_INLINE bool is_rows(std::string_view name) { return name.starts_with("rows-"); }

EDL_INLINE std::vector<segment> read_rows(std::string const& path, parameter_layout const& layout,
                                          element_range slots, element_range rows,
                                          std::span<std::string const> slot_names, row_sink const& to) {
  std::vector<segment> segments, own;  // own: of the server whose files are being read
  std::size_t at = 0;
  std::string before;
  element_range of_before;
  for (auto const& listed : read_manifest(path).files) {
    if (!is_rows(listed.name)) continue;
    auto const part = detail::open_part(path, listed, detail::rows_format);
    if (part.elements.last > sparse::hash_slots) detail::part_facts(part.file).fail("last");
    std::string const follows = detail::followed_by(part);
    if (!follows.empty() && (follows != before || part.elements != of_before))
      throw error(
          fmt::format("cannot read {}: it holds the changes since {}, which is not the file before it in the "
                      "manifest; use an older checkpoint",
                      part.file.path(), detail::shown(follows)));
    if (follows.empty() && part.elements.first != at)
      throw error(
          fmt::format("cannot read {}: hash slot {} is in none of its files, or in several", path, at));
    if (follows.empty()) detail::append_clipped(segments, std::exchange(own, {}), slots);
    at = part.elements.last;
    before = listed.name, of_before = part.elements;
    if (overlap(part.elements, slots).size() == 0) continue;
    own = detail::segments_of(part);
    element_range const both = overlap(part.elements, rows);
    if (both.size() == 0) continue;
    detail::check_content(part.file, listed);
    auto const tables = detail::stored_tables(part, layout, slot_names);
    for (std::size_t t = 0; t < tables.size(); ++t) {
      auto const put = [&](sparse::row_header const& header, view<float> values) {
        to.put(t, header, values);
      };
      if (tables[t].removed)
        detail::read_removed(part, *tables[t].removed, both, [&](std::uint64_t id) { to.remove(t, id); });
      detail::read_table(part, tables[t].candidates, both, put);
      detail::read_table(part, tables[t].rows, both, put);
    }
  }
  detail::append_clipped(segments, std::move(own), slots);
  if (at != sparse::hash_slots)
    throw error(fmt::format("cannot read {}: the files of its tables end at hash slot {} of {}", path, at,
                            sparse::hash_slots));
  return segments;
}

}  // namespace edl::checkpoint
