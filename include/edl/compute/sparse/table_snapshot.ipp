// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>

#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::sparse {

EDL_INLINE table_snapshot::table_snapshot(table& of)
    : table_(of), sizes_(hash_slots), kept_(hash_slots), kept_candidates_(hash_slots) {
  // Lock all stripes at once, so that the snapshot contains each push entirely or not at all.
  std::vector<std::unique_lock<std::mutex>> locks;
  for (std::size_t s = 0; s < table::stripes; ++s) locks.emplace_back(table_.stripes_[s].mutex);
  for (std::uint32_t slot = 0; slot < hash_slots; ++slot) rows_ += sizes_[slot] = table_.slot(slot).size();
  for (std::size_t s = 0; s < table::stripes; ++s) table_.stripes_[s].snapshots.push_back(this);
  removed_ = table_.removed_.end();
}

EDL_INLINE table_snapshot::~table_snapshot() {
  for (std::size_t s = 0; s < table::stripes; ++s) {
    std::lock_guard const lock(table_.stripes_[s].mutex);
    std::erase(table_.stripes_[s].snapshots, this);
  }
}

EDL_INLINE void table::keep(stripe const& s, row r, bool fresh) {
  for (table_snapshot* const c : s.snapshots) c->keep(r, fresh);
}

EDL_INLINE void table::keep_candidate(stripe const& s, row_header const& was, bool fresh) {
  for (table_snapshot* const c : s.snapshots) c->keep_candidate(was, fresh);
}

EDL_INLINE void table_snapshot::keep(row r, bool fresh) {
  auto const [at, first] = kept_[id_hash(r.header->id).slot()].try_emplace(r.header->id);
  if (!first || fresh) return;
  table_.check(r);
  at->second.header = *r.header;
  at->second.values.resize(table_.values());
  table_.format_.read(r, at->second.values);
}

EDL_INLINE void table_snapshot::keep_candidate(row_header const& was, bool fresh) {
  kept_candidates_[id_hash(was.id).slot()].try_emplace(was.id, fresh ? std::nullopt : std::optional(was));
}

EDL_INLINE void table_snapshot::for_each(
    std::uint32_t slot, std::function<void(row_header const&, view<float>)> const& visit) const {
  std::vector<float> values(table_.values());
  std::lock_guard const lock(table_.stripes_[slot / table::slots_per_stripe].mutex);
  auto const& kept = kept_[slot];
  std::uint32_t visited = 0;
  table_.slot(slot).for_each(table_.rows_, [&](row r) {
    if (kept.contains(r.header->id)) return;
    table_.check(r);
    ++visited;
    visit(*r.header, table_.format_.look(r, values));
  });
  for (auto const& [id, was] : kept)
    if (!was.values.empty()) ++visited, visit(was.header, was.values);
  invariant(visited == sizes_[slot], "a snapshot has the rows that the table had when it was made");
}

EDL_INLINE void table_snapshot::for_each_candidate(
    std::uint32_t slot, std::function<void(row_header const&)> const& visit) const {
  std::lock_guard const lock(table_.stripes_[slot / table::slots_per_stripe].mutex);
  auto const& kept = kept_candidates_[slot];
  table_.candidates(slot).for_each(table_.candidates_, [&](row r) {
    if (!kept.contains(r.header->id)) visit(*r.header);
  });
  for (auto const& [id, was] : kept)
    if (was) visit(*was);
}

}  // namespace edl::sparse
