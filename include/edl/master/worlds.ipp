// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

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
  roll_.enter(worker, std::move(e));
  form_world(now);
}

EDL_INLINE world const* coordinator::world_of(std::uint32_t worker, std::uint64_t incarnation) const {
  bool const formed = options_.replicas && phase_ != phase::forming;
  return formed && workers_.known(worker, incarnation) ? &world_ : nullptr;
}

EDL_INLINE void coordinator::regroup(time_point now) {
  if (phase_ == phase::forming) {
    point_.reset();  // whoever was asked for it: it is decided again
    asked_point_ = false;
    return form_world(now);
  }
  ++generation_;
  forming_since_ = now;
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
    return lose(role::worker, *id, "others cannot reach it", now);
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
  std::string ids;
  for (auto const& m : world_.members)
    ids += fmt::format("{}{}{}", ids.empty() ? "" : ", ", m.id,
                       m.current || world_.version == 0 ? "" : " (new)");
  say(severity::info, fmt::format("World {}: {} workers ({}) from version {}", world_.number,
                                  world_.members.size(), ids, world_.version));
  begin(now);
}

EDL_INLINE void coordinator::find_absent(time_point now) {
  if (phase_ != phase::forming || asked_point_ || !forming_since_) return;
  if (now - *forming_since_ > options_.absence && !roll_.empty())
    for (auto const& [id, m] : std::map(workers_.all()))
      if (!over() && !roll_.has(id, m.incarnation) && workers_.find(id))
        lose(role::worker, id, "it does not come to the next world", now);
  form_world(now);
}

}  // namespace edl::master
