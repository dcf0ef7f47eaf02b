// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "edl/checkpoint/rows.hpp"
#include "edl/core/inline.hpp"
#include "edl/ps/snapshot.hpp"

namespace edl::ps {

EDL_INLINE edl::ledger cut::ledger() const {
  if (segments.empty()) return {};
  edl::ledger all = segments.front().ledger;
  for (checkpoint::segment const& s : segments) all.intersect(s.ledger);
  for (checkpoint::segment const& s : row_segments) all.intersect(s.ledger);
  return all;
}

EDL_INLINE std::vector<checkpoint::manifest::file> write_cut(cut const& what, std::string const& path,
                                                             parameter_layout const& layout,
                                                             std::uint32_t server, std::uint32_t servers,
                                                             std::size_t most_changes) {
  std::vector<view<float>> slots;
  for (std::size_t i = 0; i < what.slot_names.size(); ++i)
    slots.push_back(what.slots.values().subspan(i * what.slot_stride, what.parameters));
  std::vector<checkpoint::manifest::file> files{
      checkpoint::write_part(path, layout,
                             {.server = server,
                              .servers = servers,
                              .version = what.version(),
                              .elements = what.elements,
                              .variables = what.variables.variables(),
                              .slot_names = what.slot_names,
                              .slots = slots,
                              .segments = what.segments})};
  if (what.tables.empty()) return files;
  auto const rows = checkpoint::write_rows(path, layout,
                                           {.server = server,
                                            .servers = servers,
                                            .version = what.version(),
                                            .slots = what.hash_slots,
                                            .tables = what.tables,
                                            .slot_names = what.row_slot_names,
                                            .segments = what.row_segments},
                                           *what.chain, most_changes);
  files.insert(files.end(), rows.begin(), rows.end());
  return files;
}

}  // namespace edl::ps
