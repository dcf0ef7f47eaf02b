// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/server_generations.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::uint64_t longest_leap = 1u << 20;

}  // namespace detail

EDL_INLINE bool server_generations::joined(std::uint32_t id, position held,
                                           std::vector<std::uint32_t> const& ranges, bool forming) {
  leaving_.erase(id);  // another process, on another machine
  bool const newer = forming && !ever_ && held.generation > past_;
  if (newer) {
    past_ = held.generation;
    past_version_ = 0;
    holders_.clear();
  }
  if (past_ != 0 && held.generation == past_) {
    for (std::uint32_t const range : ranges) holders_[range].insert(id);
    past_version_ = std::max(past_version_, held.version);
  }
  return newer;
}

EDL_INLINE void server_generations::lost(std::uint32_t id) {
  leaving_.erase(id);
  for (auto& [range, ids] : holders_) ids.erase(id);
}

EDL_INLINE bool server_generations::vacate(std::uint32_t id, std::set<std::uint32_t> const& there) {
  leaving_.insert(id);
  return !staying(there).contains(id);
}

EDL_INLINE bool server_generations::vacant(std::uint32_t id) const {
  return leaving_.contains(id) && std::ranges::none_of(places_, [&](range_place const& p) {
           return p.primary == id || p.backup == id;
         });
}

// Those on which ranges are placed: superfluous servers, and those that are about to go, only where there are
// no others.
EDL_INLINE std::set<std::uint32_t> server_generations::staying(std::set<std::uint32_t> const& there) const {
  std::set<std::uint32_t> wanted_there, lasting, both;
  for (std::uint32_t const id : there) {
    bool const is_wanted = id < wanted(), lasts = !leaving_.contains(id);
    if (is_wanted) wanted_there.insert(id);
    if (lasts) lasting.insert(id);
    if (is_wanted && lasts) both.insert(id);
  }
  for (auto const* const some : {&both, &lasting, &wanted_there})
    if (!some->empty()) return *some;
  return there;
}

// Checks the ids, not their number: while a job shrinks, superfluous servers may be present, too, and a
// missing server may have the state.
EDL_INLINE bool server_generations::all_there(std::set<std::uint32_t> const& there) const {
  for (std::uint32_t id = 0; id < wanted(); ++id)
    if (!there.contains(id)) return false;
  return true;
}

EDL_INLINE server_generations::past_state server_generations::look_at_past(
    std::set<std::uint32_t> const& there, position const& checkpoint, time_point now) {
  using enum past_state;
  if (past_ == 0) return none;
  bool const all = all_there(there), in_time = now < began_ + options_.gathering;
  if (there.empty() || (!all && in_time)) return awaited;
  bool const complete = whole(there) && !past().behind(checkpoint);
  if (!complete && !all) return awaited;  // missing servers may still join
  // A superfluous server may still join, too, and may be the only holder of a range.
  bool const more_may_come = there.size() < of_past_ && in_time;
  if (!complete && more_may_come) return awaited;
  past_ = 0;
  keeping_ = complete;
  return complete ? past_state::intact : gone;
}

EDL_INLINE void server_generations::forget() {
  keeping_ = false;
  past_ = 0;
  holders_.clear();
}

EDL_INLINE configure_servers server_generations::configure(std::uint64_t generation,
                                                           std::set<std::uint32_t> const& there,
                                                           std::string const& checkpoint) {
  ever_ = true;
  configured_.clear();
  kept_.reset();
  configure_servers c{.generation = generation, .restore = {}, .keep = keeping_, .servers = there};
  if (keeping_) {
    c.holders = holders_;
    // Prefer a range's previous primary: it may have made unacknowledged steps that its backup lacks.
    for (std::uint32_t r = 0; r < ranges(); ++r) {
      auto const& ids = holders_.at(r);
      invariant(!ids.empty(), "each range of a kept state has a holder");
      bool const stays = r < places_.size() && ids.contains(places_[r].primary);
      c.sources.push_back(stays ? places_[r].primary : *ids.begin());
    }
  } else {
    c.restore = checkpoint;
  }
  c.places = places_ = place(ranges(), wanted(), staying(there), options_.copies, holders_);
  return c;
}

EDL_INLINE bool server_generations::configured(std::uint32_t id, std::optional<copy_position> kept,
                                               std::set<std::uint32_t> const& there) {
  if (configured_.insert(id).second && kept) {
    if (kept_) {
      kept_->applied.intersect(kept->applied);
      kept_->version = std::min(kept_->version, kept->version);
    } else {
      kept_ = std::move(kept);
    }
  }
  if (configured_.size() < there.size()) return false;
  leap_ = 1;
  holders_.clear();
  for (std::uint32_t r = 0; r < places_.size(); ++r) {
    invariant(places_[r].backup != places_[r].primary, "the copies of a range are on two servers");
    holders_[r].insert(places_[r].primary);
    if (places_[r].backup) holders_[r].insert(*places_[r].backup);
  }
  return true;
}

EDL_INLINE std::optional<copy_position> server_generations::take_kept() {
  return keeping_ ? std::exchange(kept_, std::nullopt) : std::nullopt;
}

EDL_INLINE std::uint64_t server_generations::leap() {
  return std::exchange(leap_, std::min(2 * leap_, detail::longest_leap));
}

}  // namespace edl::master
