// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/base/checkpoint/part.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::checkpoint {
namespace detail {

/// The content of an incremental file: the changes since the steps of the previous file.
struct row_changes {
  std::string follows;
  std::span<segment const> since;
  std::vector<std::vector<std::uint64_t>> removed;  // of each table

  bool has(sparse::row_header const& h, std::uint32_t slot) const {
    auto const s = std::ranges::find_if(since, [&](segment const& one) { return slot < one.elements.last; });
    invariant(s != since.end(), "each hash slot of a part belongs to a segment");
    return h.last_use >= s->steps;
  }
};

/// A table's rows, or its candidates, as they are written to a file.
struct written_rows {
  std::vector<std::uint64_t> counts;  // of each hash slot
  tensor_source tensor;
};

/// each(slot, visit(header, values)): visits the snapshot. `counts`: rows of each hash slot, if they are
/// known; otherwise they are counted.
template <class Each>
written_rows rows_to_write(std::string name, std::size_t row_bytes, element_range slots,
                           row_changes const* changes, std::vector<std::uint64_t> counts, Each const& each) {
  auto const chosen = [each, changes](std::uint32_t slot, auto const& visit) {
    each(slot, [&](sparse::row_header const& header, view<float> values) {
      if (!changes || changes->has(header, slot)) visit(header, values);
    });
  };
  written_rows w{.counts = changes ? std::vector<std::uint64_t>() : std::move(counts), .tensor = {}};
  for (auto s = std::uint32_t(slots.first); s < slots.last && w.counts.size() < slots.size(); ++s) {
    w.counts.push_back(0);
    chosen(s, [&](auto const&, auto) { ++w.counts.back(); });
  }
  invariant(w.counts.size() == slots.size(), "each hash slot has its count");
  std::uint64_t const all = std::accumulate(w.counts.begin(), w.counts.end(), std::uint64_t{0});
  if (all == 0) w.counts.clear();
  w.tensor = {.name = std::move(name),
              .dtype = "U8",
              .dims = {all, row_bytes},
              .data = {},
              .stream = [chosen, slots, row_bytes, all](tensor_source::sink const& to) {
                std::uint64_t written = 0;
                std::vector<std::byte> buffer;
                buffer.reserve(rows_at_a_time + row_bytes);
                for (auto s = std::uint32_t(slots.first); s < slots.last; ++s) {
                  // Pushes to these rows wait for the visit, not for the disk.
                  chosen(s, [&](sparse::row_header const& header, view<float> values) {
                    auto const head = std::as_bytes(std::span(&header, 1));
                    auto const tail = std::as_bytes(values);
                    buffer.insert(buffer.end(), head.begin(), head.end());
                    buffer.insert(buffer.end(), tail.begin(), tail.end());
                    ++written;
                  });
                  if (buffer.size() < rows_at_a_time && s + 1 < slots.last) continue;
                  to(buffer);
                  buffer.clear();
                }
                invariant(written == all, "as many rows are written as were counted");
              }};
  return w;
}

EDL_INLINE manifest::file write_rows_file(bucket::place const& to, parameter_layout const& layout,
                                          rows_part const& part, row_changes const* changes) {
  std::string const where =
      fmt::format("cannot write the rows of server {} of {} into {}", part.server, part.servers, to.path());
  if (part.server >= part.servers) throw error(where + ": no such server");
  if (part.tables.size() != layout.tables.size()) throw error(where + ": the model has other tables");
  auto described = nlohmann::json::array();
  std::vector<tensor_source> tensors;
  for (std::size_t i = 0; i < part.tables.size(); ++i) {
    sparse::table_snapshot const& snapshot = *part.tables[i];
    std::vector<std::uint64_t> counts;
    for (auto s = std::uint32_t(part.slots.first); s < part.slots.last; ++s)
      counts.push_back(snapshot.size(s));
    std::string const name = "tables/" + layout.tables[i].name;
    written_rows rows =
        rows_to_write(name, row_bytes(layout.tables[i].width, part.slot_names.size()), part.slots, changes,
                      std::move(counts),
                      [&snapshot](std::uint32_t slot, auto const& visit) { snapshot.for_each(slot, visit); });
    written_rows candidates =
        rows_to_write(name + "/candidates", sizeof(sparse::row_header), part.slots, changes, {},
                      [&snapshot](std::uint32_t slot, auto const& visit) {
                        snapshot.for_each_candidate(
                            slot, [&](sparse::row_header const& header) { visit(header, view<float>()); });
                      });
    described.push_back({{"name", layout.tables[i].name},
                         {"width", layout.tables[i].width},
                         {"rows", std::move(rows.counts)},
                         {"candidates", std::move(candidates.counts)}});
    tensors.push_back(std::move(rows.tensor));
    tensors.push_back(std::move(candidates.tensor));
    if (changes)
      tensors.push_back({.name = name + "/removed",
                         .dtype = "U64",
                         .dims = {changes->removed[i].size()},
                         .data = std::as_bytes(std::span(changes->removed[i]))});
  }
  std::map<std::string, std::string> metadata{
      {"edl", rows_format},
      {"server", std::to_string(part.server)},
      {"servers", std::to_string(part.servers)},
      {"version", std::to_string(part.version)},
      {"first", std::to_string(part.slots.first)},
      {"last", std::to_string(part.slots.last)},
      {"layout_digest", fmt::format("{:016x}", layout_digest(layout))},
      {"segments", to_json(part.segments, part.slots, where)}};
  if (changes) metadata["follows"] = changes->follows;
  try {
    metadata["tables"] = described.dump();
    metadata["slots"] =
        nlohmann::json(std::vector<std::string>(part.slot_names.begin(), part.slot_names.end())).dump();
  } catch (nlohmann::json::type_error const&) {
    throw error(where + ": the name of a table or slot is not UTF-8");
  }
  manifest::file written{.name = new_part_name("rows", part.server, part.servers),
                         .version = part.version,
                         .ledger = common_ledger(part.segments)};
  write_file(to, written, tensors, metadata);
  return written;
}

/// The changes since the chain's end, if they are known and worth a file of their own.
EDL_INLINE std::optional<row_changes> changes_since(row_chain const& chain, rows_part const& part,
                                                    std::size_t most_changes) {
  if (chain.files.empty() || chain.files.size() > most_changes) return std::nullopt;
  invariant(!chain.segments.empty() && chain.removed.size() == part.tables.size(),
            "a chain with a file has its segments and removed rows");
  auto const bytes_of = [&](std::size_t first, std::size_t last) {
    std::uint64_t n = 0;
    for (std::size_t i = first; i < last; ++i) n += chain.files[i].bytes;
    return n;
  };
  if (bytes_of(1, chain.files.size()) >= bytes_of(0, 1)) return std::nullopt;
  // A row records the time of its last training in 32 bits.
  if (part.slots !=
          element_range{chain.segments.front().elements.first, chain.segments.back().elements.last} ||
      std::ranges::any_of(part.segments, [](segment const& s) { return s.steps >> 32 != 0; }))
    return std::nullopt;
  for (segment const& s : part.segments)
    for (segment const& was : chain.segments)
      if (was.elements.first < s.elements.last && s.elements.first < was.elements.last && was.steps > s.steps)
        return std::nullopt;
  row_changes c{.follows = chain.files.back().name, .since = chain.segments, .removed = {}};
  for (std::size_t t = 0; t < part.tables.size(); ++t) {
    auto removed = part.tables[t]->of().removed().between(chain.removed[t], part.tables[t]->removed());
    if (!removed) return std::nullopt;
    c.removed.push_back(std::move(*removed));
  }
  invariant(c.removed.size() == part.tables.size(), "a file of changes lists the removed rows of each table");
  return c;
}

/// Links the files of the chain into the checkpoint; false where that is impossible.
EDL_INLINE bool link_files(row_chain const& chain, bucket::place const& to) {
  if (to.path() == chain.path) return true;
  for (manifest::file const& f : chain.files)
    if (!to.link(chain.path, f.name)) return false;
  if (!to.in_bucket()) sync_directory(to.path());
  return true;
}

}  // namespace detail

EDL_INLINE std::vector<manifest::file> write_rows(bucket::place const& to, parameter_layout const& layout,
                                                  rows_part const& part, row_chain& chain,
                                                  std::size_t most_changes) {
  auto const changes = detail::changes_since(chain, part, most_changes);
  bool const adds = changes && detail::link_files(chain, to);
  manifest::file const written = detail::write_rows_file(to, layout, part, adds ? &*changes : nullptr);
  if (!adds) chain.files.clear();
  // All files now belong to this version: a later file has what an earlier one lacks.
  for (manifest::file& f : chain.files) f.version = written.version, f.ledger = written.ledger;
  chain.files.push_back(written);
  chain.path = to.path();
  chain.segments.assign(part.segments.begin(), part.segments.end());
  chain.removed.clear();
  for (auto const& snapshot : part.tables) {
    chain.removed.push_back(snapshot->removed());
    snapshot->of().removed().forget(snapshot->removed());
  }
  invariant(!chain.files.empty() && chain.removed.size() == part.tables.size(),
            "a chain ends with the written file, and has the removed rows of each table");
  return chain.files;
}

}  // namespace edl::checkpoint
