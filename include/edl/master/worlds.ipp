// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

EDL_INLINE void coordinator::enter(std::uint32_t worker, entry e, time_point now) {
  if (over() || !options_.replicas || !workers_.seen(worker, e.incarnation, now)) return;
  if (phase_ != phase::forming) {
    if (e.last < generation_) return;  // asked again: the answer is the world that there is
    say(severity::info, fmt::format("worker {} has left world {}{}", worker, generation_,
                                    e.suspect ? fmt::format(": it misses worker {}", *e.suspect) : ""));
    regroup_workers(now);
  }
  worlds_.enter(worker, std::move(e), now);
  form_world(now);
}

EDL_INLINE world const* coordinator::world_of(std::uint32_t worker, std::uint64_t incarnation) const {
  bool const formed = options_.replicas && phase_ != phase::forming;
  return formed && workers_.known(worker, incarnation) ? &worlds_.current() : nullptr;
}

EDL_INLINE void coordinator::regroup_workers(time_point now) {
  if (phase_ == phase::forming) {
    point_.reset();  // whoever was asked for it: it is decided again
    worlds_.changed();
    return form_world(now);
  }
  if (!stood_since_) stood_since_ = now;
  ++generation_;
  void_leases();
  worlds_.broke(now);
}

EDL_INLINE void coordinator::form_world(time_point now) {
  if (phase_ != phase::forming) return;
  bool const restorable = trains() && (recovered_ || !worlds_.none_yet());
  using enum worker_worlds::step::kind;
  switch (auto const next = worlds_.next(workers_, restorable, now); next.what) {
    case wait:
      return;
    case give_up:
      return this->give_up(role::worker, next.member, "others cannot reach it", now);
    case go_on:
      return go_back_to({"", next.newest->version, next.newest->applied}, now);
    case worker_worlds::step::kind::begin:
      return go_back_to(options_.start, now);
    case find:
      commands_.emplace_back(find_restore_point{generation_});
  }
}

EDL_INLINE void coordinator::begin_world(time_point now) {
  auto const unwritten = worlds_.begin(generation_, workers_, point_->version, point_->directory);
  evaluation_.forget_unless([&](std::uint64_t version) { return worlds_.is_frozen(version); });
  for (std::uint64_t const version : unwritten) commands_.emplace_back(release_frozen{version, false});
  world const& w = worlds_.current();
  std::string ids;
  for (auto const& m : w.members)
    ids += fmt::format("{}{}{}", ids.empty() ? "" : ", ", m.id, m.current || w.version == 0 ? "" : " (new)");
  say(severity::info, fmt::format("World {}: {} ({}) from version {}", w.number,
                                  counted(w.members.size(), "worker"), ids, w.version));
  begin(now);
}

EDL_INLINE void coordinator::find_absent(time_point now) {
  if (phase_ != phase::forming || worlds_.asks()) return;
  // A suspension waits for no longer than all of it may take.
  duration const timeout = suspending_ ? options_.suspension / 2 : options_.absence;
  for (std::uint32_t const id : worlds_.absent(workers_, timeout, now))
    if (!over() && workers_.find(id)) give_up(role::worker, id, "it does not come to the next world", now);
  form_world(now);
}

}  // namespace edl::master
