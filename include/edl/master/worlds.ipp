// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

EDL_INLINE void coordinator::enter(std::uint32_t worker, entry e, time_point now) {
  if (over() || !options_.replicas || !workers_.seen(worker, e.incarnation, now)) return;
  if (phase_ != phase::forming) {
    if (e.last < generation_) return;  // asked again: the answer is the world that there is
    say(severity::info, fmt::format("worker {} has left world {}{}", worker, generation_,
                                    e.suspect ? fmt::format(": it misses worker {}", *e.suspect) : ""));
    regroup(now);
  }
  if (!awaited_since_) awaited_since_ = now;
  roll_.enter(worker, std::move(e));
  form_world(now);
}

EDL_INLINE world const* coordinator::world_of(std::uint32_t worker, std::uint64_t incarnation) const {
  bool const formed = options_.replicas && phase_ != phase::forming;
  return formed && workers_.known(worker, incarnation) ? &world_ : nullptr;
}

EDL_INLINE std::vector<std::uint32_t> coordinator::holders(std::uint64_t version) const {
  std::vector<std::uint32_t> all;
  for (auto const& m : world_.members)
    if (m.current || version > world_.version) all.push_back(m.id);
  return all;
}

EDL_INLINE void coordinator::regroup(time_point now) {
  if (phase_ == phase::forming) {
    point_.reset();  // whoever was asked for it: it is decided again
    asked_point_ = false;
    return form_world(now);
  }
  if (!stood_since_) stood_since_ = now;
  ++generation_;
  forming_since_ = awaited_since_ = now;
  asked_point_ = false;
  void_leases();
  roll_.clear();
}

EDL_INLINE void coordinator::form_world(time_point now) {
  if (phase_ != phase::forming || asked_point_ || workers_.all_gone() || !roll_.complete(workers_)) return;
  // The first world waits a little for those who are being started with it.
  bool const first = world_.number == 0;
  if (first && !forming_since_) forming_since_ = now;
  if (first && workers_.all().size() < expected_ && now < *forming_since_ + options_.gathering) return;
  if (auto const id = roll_.suspect(); id && workers_.find(*id) && workers_.all().size() > 1)
    return give_up(role::worker, *id, "others cannot reach it", now);
  if (copy_position const* const newest = roll_.newest()) {
    go_back_to({"", newest->version, newest->applied}, now);
  } else if ((first && !recovered_) || !trains()) {
    go_back_to(options_.start, now);
  } else {
    asked_point_ = true;
    commands_.emplace_back(find_restore_point{generation_});
  }
}

EDL_INLINE void coordinator::begin_world(time_point now) {
  world_ = roll_.form(generation_, workers_, point_->version, point_->directory);
  // Who takes another's state drops what it had frozen, and a newcomer has nothing.
  std::set<std::uint32_t> current;
  for (auto const& m : world_.members)
    if (m.current) current.insert(m.id);
  for (auto& [version, who] : held_)
    std::erase_if(who, [&](std::uint32_t id) { return !current.contains(id); });
  std::erase_if(held_, [](auto const& v) { return v.second.empty(); });
  evaluation_.forget_unless([&](std::uint64_t version) { return held_.contains(version); });
  // What the world begins with is told again by who has it frozen, and written then.
  for (std::uint64_t const version : std::exchange(unwritten_, {}))
    if (version != world_.version) commands_.emplace_back(release_frozen{version, false});
  std::string ids;
  for (auto const& m : world_.members)
    ids += fmt::format("{}{}{}", ids.empty() ? "" : ", ", m.id,
                       m.current || world_.version == 0 ? "" : " (new)");
  say(severity::info, fmt::format("World {}: {} workers ({}) from version {}", world_.number,
                                  world_.members.size(), ids, world_.version));
  begin(now);
}

EDL_INLINE void coordinator::find_absent(time_point now) {
  if (phase_ != phase::forming || asked_point_) return;
  // When the last of them is lost the world begins, and its roll is empty: so they are found first.
  // A suspension waits for no longer than all of it may take.
  duration const patience = suspending_ ? options_.suspension / 2 : options_.absence;
  std::vector<std::uint32_t> absent;
  if (awaited_since_ && !roll_.empty())
    for (auto const& [id, m] : workers_.all())
      if (!roll_.has(id, m.incarnation) && now - std::max(*awaited_since_, m.joined) > patience)
        absent.push_back(id);
  for (std::uint32_t const id : absent)
    if (!over() && workers_.find(id)) give_up(role::worker, id, "it does not come to the next world", now);
  form_world(now);
}

}  // namespace edl::master
