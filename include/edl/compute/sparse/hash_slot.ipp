// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "edl/compute/sparse/hash_slot.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::sparse {

namespace detail {

/// Which of eight bytes equal `value`: the upper bit of each match. A byte above a match may be reported
/// falsely, so callers verify matches (Warren, "Hacker's Delight", 6-1). The lowest one is always right.
constexpr std::uint64_t matches(std::uint64_t bytes, std::uint8_t value) {
  std::uint64_t const x = bytes ^ (0x0101010101010101u * value);
  return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
}

}  // namespace detail

template <class Visit>
void hash_slot::probe(id_hash h, Visit&& visit) const {
  if (lines_.empty()) return;
  std::uint8_t const tag = h.tag();
  for (std::uint32_t i = h.place(lines());; i = i + 1 == lines() ? 0 : i + 1) {
    line const& here = lines_[i];
    std::array<std::uint64_t, 2> tags;
    std::memcpy(tags.data(), here.tags.data(), 16);
    for (std::uint32_t half : {0u, 1u})
      for (std::uint64_t m = detail::matches(tags[half], tag); m != 0; m &= m - 1) {
        auto const entry = half * 8 + std::uint32_t(std::countr_zero(m)) / 8;
        if (here.tags[entry] == tag && visit(here, entry)) return;
      }
    if (here.tags[line::entries - 1] == 0) return;  // entries fill from the first to the last
  }
}

EDL_INLINE row hash_slot::guess(id_hash h, row_memory const& rows) const {
  row found;
  probe(h, [&](line const& at, std::uint32_t entry) {
    found = rows.at(at.numbers[entry]);
    return true;
  });
  return found;
}

EDL_INLINE hash_slot::place hash_slot::find_place(std::uint64_t id, id_hash h, row_memory const& rows) const {
  place found;
  probe(h, [&](line const& at, std::uint32_t entry) {
    if (rows.at(at.numbers[entry]).header->id != id) return false;
    found = {const_cast<line*>(&at), entry};
    return true;
  });
  return found;
}

EDL_INLINE row hash_slot::find(std::uint64_t id, id_hash h, row_memory const& rows) const {
  place const p = find_place(id, h, rows);
  return p.at ? rows.at(p.at->numbers[p.entry]) : row{};
}

EDL_INLINE void hash_slot::enter(id_hash h, std::uint32_t number) {
  invariant(!lines_.empty(), "an index has a line before its first entry");
  for (std::uint32_t i = h.place(lines());; i = i + 1 == lines() ? 0 : i + 1) {
    auto const free = std::find(lines_[i].tags.begin(), lines_[i].tags.begin() + line::entries, 0);
    auto const entry = std::size_t(free - lines_[i].tags.begin());
    if (entry == line::entries) continue;
    lines_[i].tags[entry] = h.tag();
    lines_[i].numbers[entry] = number;
    return;
  }
}

EDL_INLINE void hash_slot::grow(row_memory const& rows) {
  lines_ = std::vector<line>(std::max<std::size_t>(1, lines_.size() + (lines_.size() + 3) / 4));
  for (std::uint32_t i = 0; i < size_; ++i) enter(id_hash(rows.at(number(i)).header->id), number(i));
}

EDL_INLINE row hash_slot::insert(std::uint64_t id, id_hash h, row_memory& rows) {
  if (size_ == pieces_.size() * row_memory::rows_per_piece) {
    pieces_.reserve(pieces_.size() + 1 + pieces_.size() / 8);
    pieces_.push_back(rows.take());
  }
  // Filled to seven eighths at most, the index always has a free entry.
  if (std::uint64_t{size_} + 1 > lines_.size() * line::entries * 7 / 8) grow(rows);
  std::uint32_t const n = number(size_);
  enter(h, n);
  ++size_;
  invariant(size_ < lines_.size() * line::entries, "an index has a free entry, at which a search ends");
  invariant(size_ <= pieces_.size() * row_memory::rows_per_piece, "each row has a place in a piece");
  row const r = rows.at(n);
  std::memset(r.header, 0, rows.row_bytes());
  r.header->id = id;
  return r;
}

EDL_INLINE bool hash_slot::remove(std::uint64_t id, id_hash h, row_memory& rows) {
  place const gone = find_place(id, h, rows);
  if (!gone.at) return false;
  invariant(size_ > 0, "a row that is found is counted");
  std::uint32_t const freed = gone.at->numbers[gone.entry], last = number(size_ - 1);

  // The last entry of the line moves into the gap. A line that was full may have overflowed into the lines
  // after it: one of those entries moves back, and leaves a gap in its own line.
  auto const erase = [](line& l, std::uint32_t entry) {
    std::uint32_t end = line::entries;
    while (l.tags[end - 1] == 0) --end;
    l.tags[entry] = l.tags[end - 1];
    l.numbers[entry] = l.numbers[end - 1];
    l.tags[end - 1] = 0;
    return end == line::entries;
  };
  auto hole = std::uint32_t(gone.at - lines_.data());
  bool was_full = erase(*gone.at, gone.entry);
  for (std::uint32_t i = hole; was_full;) {
    i = i + 1 == lines() ? 0 : i + 1;
    line& here = lines_[i];
    bool const full = here.tags[line::entries - 1] != 0;
    for (std::uint32_t e = 0; e < line::entries && here.tags[e] != 0; ++e) {
      std::uint32_t const home = id_hash(rows.at(here.numbers[e]).header->id).place(lines());
      bool const stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
      if (stays) continue;
      lines_[hole].tags[line::entries - 1] = here.tags[e];
      lines_[hole].numbers[line::entries - 1] = here.numbers[e];
      erase(here, e);
      hole = i;
      break;
    }
    was_full = full;
  }

  --size_;
  if (freed != last) {
    row const moved = rows.at(last);
    place const of = find_place(moved.header->id, id_hash(moved.header->id), rows);
    invariant(of.at != nullptr, "each row is in the index");
    of.at->numbers[of.entry] = freed;
    std::memcpy(rows.at(freed).header, moved.header, rows.row_bytes());
  }
  if (size_ % row_memory::rows_per_piece == 0) {
    rows.give_back(pieces_.back());
    pieces_.pop_back();
  }
  invariant(pieces_.size() == (size_ + row_memory::rows_per_piece - 1) / row_memory::rows_per_piece,
            "a slot has as many pieces as its rows take");
  return true;
}

}  // namespace edl::sparse
