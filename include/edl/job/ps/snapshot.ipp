// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <vector>

#include "edl/base/checkpoint/rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/snapshot.hpp"

namespace edl::ps {

EDL_INLINE edl::ledger full_snapshot::ledger() const {
  if (segments.empty()) return {};
  edl::ledger all = segments.front().ledger;
  for (checkpoint::segment const& s : segments) all.intersect(s.ledger);
  for (checkpoint::segment const& s : row_segments) all.intersect(s.ledger);
  return all;
}

EDL_INLINE std::vector<checkpoint::manifest::file> write_snapshot(full_snapshot const& what,
                                                                  bucket::place const& path,
                                                                  parameter_layout const& layout,
                                                                  written_parts const& parts) {
  std::vector<checkpoint::manifest::file> files;
  if (parts.variables) {
    std::vector<view<float>> slots;
    for (std::size_t i = 0; i < what.slot_names.size(); ++i)
      slots.push_back(what.slots.values().subspan(i * what.slot_stride, what.parameters));
    files.push_back(checkpoint::write_part(path, layout,
                                           {.server = parts.server,
                                            .servers = parts.servers,
                                            .version = what.version(),
                                            .elements = what.elements,
                                            .variables = what.variables.variables(),
                                            .slot_names = what.slot_names,
                                            .slots = slots,
                                            .segments = what.segments}));
  }
  if (what.tables.empty()) return files;
  auto const rows = parts.of_rows.value_or(
      written_parts::rows{.slots = what.hash_slots, .part = parts.server, .parts = parts.servers});
  if (overlap(rows.slots, what.hash_slots) != rows.slots)
    throw error(fmt::format("cannot write rows of hash slots [{}, {}): this server has [{}, {})",
                            rows.slots.first, rows.slots.last, what.hash_slots.first, what.hash_slots.last));
  std::vector<checkpoint::segment> segments;
  for (checkpoint::segment const& s : what.row_segments)
    if (element_range const own = overlap(s.elements, rows.slots); own.size() > 0)
      segments.push_back({own, s.steps, s.ledger});
  auto const written = checkpoint::write_rows(path, layout,
                                              {.server = rows.part,
                                               .servers = rows.parts,
                                               .version = what.version(),
                                               .slots = rows.slots,
                                               .tables = what.tables,
                                               .slot_names = what.row_slot_names,
                                               .segments = segments},
                                              *what.chain, parts.most_changes);
  files.insert(files.end(), written.begin(), written.end());
  return files;
}

}  // namespace edl::ps
