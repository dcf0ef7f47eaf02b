// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/roll_call.hpp"

namespace edl::master {
namespace detail {

inline bool newer(copy_position const& a, copy_position const& b) {
  return a.world != b.world ? a.world > b.world : a.version > b.version;
}

}  // namespace detail

EDL_INLINE void roll_call::enter(std::uint32_t id, entry e) {
  auto const before = entries_.find(id);
  bool const again = before != entries_.end() && before->second.incarnation == e.incarnation;
  if (e.suspect && !again) {
    suspicion& s = suspicions_[*e.suspect];
    if (!std::exchange(s.counted, true)) ++s.worlds;
    ++s.voices;
  }
  followers_.erase(id);
  for (std::uint32_t const other : e.brings) followers_.erase(other);
  entries_.insert_or_assign(id, std::move(e));
}

EDL_INLINE void roll_call::forget(std::uint32_t id) {
  entries_.erase(id);
  followers_.erase(id);
  suspicions_.erase(id);
}

EDL_INLINE void roll_call::clear() {
  entries_.clear();
  for (auto& [id, s] : suspicions_) s.counted = false;
}

EDL_INLINE bool roll_call::has(std::uint32_t id, std::uint64_t incarnation) const {
  auto const it = entries_.find(id);
  return it != entries_.end() && it->second.incarnation == incarnation;
}

EDL_INLINE bool roll_call::complete(membership const& workers) const {
  return std::all_of(workers.all().begin(), workers.all().end(),
                     [&](auto const& w) { return has(w.first, w.second.incarnation) || !awaits(w.first); });
}

EDL_INLINE copy_position const* roll_call::newest() const {
  copy_position const* best = nullptr;
  for (auto const& [id, e] : entries_)
    if (e.copy && (!best || detail::newer(*e.copy, *best))) best = &*e.copy;
  return best;
}

EDL_INLINE world roll_call::form(std::uint64_t number, membership const& workers, std::uint64_t version,
                                 std::string restore) {
  world w{.number = number, .members = {}, .version = version, .restore = std::move(restore)};
  copy_position const* const best = newest();
  if (best) w.copied_from = best->world;
  for (auto const& [id, m] : workers.all()) {
    if (follows(id)) continue;
    invariant(has(id, m.incarnation), "a world consists of workers that have entered");
    entry const& e = entries_.at(id);
    w.members.push_back({id, m.incarnation, m.addresses, best && e.copy && !detail::newer(*best, *e.copy)});
  }
  if (version > reached_) suspicions_.clear();
  reached_ = version;
  clear();
  return w;
}

EDL_INLINE std::optional<std::uint32_t> roll_call::suspect() {
  // The last world made progress.
  if (auto const* const c = newest(); c && c->version > reached_) suspicions_.clear();
  // Of two members that suspect each other, give up the younger one.
  std::optional<std::uint32_t> most;
  for (auto const& [id, s] : suspicions_)
    if (s.worlds >= threshold_ && (!most || s.voices >= suspicions_[*most].voices)) most = id;
  if (most) suspicions_.clear();
  return most;
}

}  // namespace edl::master
