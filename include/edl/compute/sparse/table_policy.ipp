// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "edl/compute/sparse/table.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

/// Admission and eviction: which ids of a table have rows.
namespace edl::sparse {

/// The uses of an id that this push admits, or 0.
EDL_INLINE std::uint32_t table::admit(stripe& s, std::uint64_t id, std::uint32_t clock) {
  auto const wanted = std::uint32_t(options_.policy.admission);
  if (wanted == 1) return 1;
  id_hash const h(id);
  hash_slot& own = s.candidates[within(h)];
  row r = own.find(id, h, candidates_);
  bool const fresh = !r;
  if (fresh) {
    if (is_full(own)) make_room(s, own, false);
    r = own.insert(id, h, candidates_);
  }
  keep_candidate(s, *r.header, fresh);
  r.header->last_use = clock;
  if (++r.header->uses < wanted) return 0;
  bool const was_there = own.remove(id, h, candidates_);
  invariant(was_there, "an id that is admitted was a candidate");
  return wanted;
}

/// Creates a row without values for an id that has none.
EDL_INLINE row table::create(stripe& s, std::uint64_t id) {
  id_hash const h(id);
  row const r = s.slots[within(h)].insert(id, h, rows_);
  keep(s, r, true);
  return r;
}

EDL_INLINE void table::remove_row(stripe& s, hash_slot& from, std::uint64_t id) {
  id_hash const h(id);
  // Notify snapshots first: they keep the row as it was.
  if (!s.snapshots.empty()) keep(s, from.find(id, h, rows_));
  bool const was_there = from.remove(id, h, rows_);
  invariant(was_there, "a removed row was in the table");
  removed_.add(id);
}

EDL_INLINE void table::remove_candidate(stripe& s, hash_slot& from, std::uint64_t id) {
  id_hash const h(id);
  if (!s.snapshots.empty()) keep_candidate(s, *from.find(id, h, candidates_).header);
  bool const was_there = from.remove(id, h, candidates_);
  invariant(was_there, "a removed candidate was in the table");
  removed_.add(id);
}

/// Removes a sixteenth of a hash slot's rows, or candidates: searching for a single one would take as long.
EDL_INLINE void table::make_room(stripe& s, hash_slot& of, bool of_rows) {
  bool const by_uses = options_.policy.victims == nn::row_victims::least_used;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> all;
  of.for_each(of_rows ? rows_ : candidates_, [&](row r) {
    row_header const& h = *r.header;
    all.emplace_back(by_uses ? h.uses : h.last_use, by_uses ? h.last_use : h.uses, h.id);
  });
  invariant(!all.empty(), "room is made where something takes it");
  auto const end = all.begin() + std::ptrdiff_t((all.size() + 15) / 16);
  std::nth_element(all.begin(), end - 1, all.end());
  for (auto it = all.begin(); it != end; ++it) {
    std::uint64_t const id = std::get<2>(*it);
    of_rows ? remove_row(s, of, id) : remove_candidate(s, of, id);
  }
  invariant(!is_full(of), "a slot has room when it has been made");
  if (of_rows) evicted_ += std::uint64_t(end - all.begin());
}

EDL_INLINE void table::sweep(std::uint32_t number, std::uint32_t clock) {
  std::uint64_t const unused = options_.policy.unused_steps;
  if (unused == 0 || clock < unused) return;
  stripe& s = stripes_[number / slots_per_stripe];
  std::lock_guard const lock(s.mutex);
  std::vector<std::uint64_t> gone;
  auto const collect = [&](row r) {
    if (r.header->last_use + unused <= clock) gone.push_back(r.header->id);
  };
  hash_slot& rows = s.slots[number % slots_per_stripe];
  rows.for_each(rows_, collect);
  for (std::uint64_t id : gone) remove_row(s, rows, id);
  evicted_ += gone.size();
  gone.clear();
  hash_slot& candidates = s.candidates[number % slots_per_stripe];
  candidates.for_each(candidates_, collect);
  for (std::uint64_t id : gone) remove_candidate(s, candidates, id);
}

EDL_INLINE void table::put(row_header const& header, view<float> values) {
  if (!values.empty() && values.size() != format_.values())
    throw error(fmt::format("a row of {} values for a table of {}", values.size(), format_.values()));
  id_hash const h(header.id);
  stripe& s = stripe_of(h);
  std::lock_guard const lock(s.mutex);
  hash_slot &rows = s.slots[within(h)], &candidates = s.candidates[within(h)];
  row r = rows.find(header.id, h, rows_), candidate = candidates.find(header.id, h, candidates_);
  if (values.empty()) {
    if (r) remove_row(s, rows, header.id);
    if (!candidate && is_full(candidates)) make_room(s, candidates, false);
    bool const fresh = !candidate;
    if (fresh) candidate = candidates.insert(header.id, h, candidates_);
    keep_candidate(s, *candidate.header, fresh);
    *candidate.header = header;
    return;
  }
  if (candidate) remove_candidate(s, candidates, header.id);
  if (!r && is_full(rows)) make_room(s, rows, true);
  if (!r) r = create(s, header.id);
  keep(s, r);
  *r.header = header;
  format_.write(r, values);
  format_.note(r);
}

EDL_INLINE void table::remove(std::uint64_t id) {
  id_hash const h(id);
  stripe& s = stripe_of(h);
  std::lock_guard const lock(s.mutex);
  if (hash_slot& rows = s.slots[within(h)]; rows.find(id, h, rows_)) remove_row(s, rows, id);
  if (hash_slot& all = s.candidates[within(h)]; all.find(id, h, candidates_)) remove_candidate(s, all, id);
}

EDL_INLINE std::size_t table::remove_if(std::function<bool(row_header const&)> const& goes,
                                        std::function<void(std::uint64_t id)> const& removed) {
  std::size_t n = 0;
  std::vector<std::uint64_t> gone;
  for (std::size_t i = 0; i < stripes; ++i) {
    stripe& s = stripes_[i];
    std::lock_guard const lock(s.mutex);
    for (hash_slot& slot : s.slots) {
      gone.clear();
      slot.for_each(rows_, [&](row r) {
        if (goes(*r.header)) gone.push_back(r.header->id);
      });
      for (std::uint64_t id : gone) {
        remove_row(s, slot, id);
        if (removed) removed(id);
      }
      n += gone.size();
    }
  }
  return n;
}

EDL_INLINE void table::clear() {
  remove_if([](row_header const&) { return true; });
  for (std::size_t i = 0; i < stripes; ++i) {
    stripe& s = stripes_[i];
    std::lock_guard const lock(s.mutex);
    for (hash_slot& slot : s.candidates) {
      std::vector<std::uint64_t> gone;
      slot.for_each(candidates_, [&](row r) { gone.push_back(r.header->id); });
      for (std::uint64_t id : gone) remove_candidate(s, slot, id);
    }
  }
}

}  // namespace edl::sparse
