// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/job/master/worker_worlds.hpp"

namespace edl::master {
namespace detail {

// Who is not heard for longer may be silent: heartbeats come each second.
inline constexpr std::chrono::milliseconds beats_apart{1'400};

}  // namespace detail

EDL_INLINE void worker_worlds::enter(std::uint32_t worker, entry e, time_point now) {
  if (!awaited_since_) awaited_since_ = now;
  if (e.copy && e.copy->world <= void_until_ && void_until_ > 0) e.copy.reset();
  roll_.enter(worker, std::move(e));
}

EDL_INLINE bool worker_worlds::may_follow(std::uint32_t worker, membership const& workers) const {
  bool const barren = !roll_.empty() && !roll_.newest();  // no worker of the next world has a copy
  return !none_yet() && !barren && std::ranges::any_of(workers.all(), [&](auto const& w) {
    return w.first != worker && !follows(w.first);
  });
}

EDL_INLINE bool worker_worlds::follow(std::uint32_t worker, membership const& workers) {
  if (!may_follow(worker, workers)) return false;
  roll_.follow(worker);
  return true;
}

EDL_INLINE void worker_worlds::broke(time_point now) {
  forming_since_ = awaited_since_ = now;
  finding_ = false;
  roll_.clear();
}

EDL_INLINE worker_worlds::step worker_worlds::next(membership const& workers, bool restorable,
                                                   time_point now) {
  if (finding_ || workers.all_gone() || !roll_.complete(workers)) return {};
  // The first world waits briefly for workers that start together with it.
  if (none_yet() && !forming_since_) forming_since_ = now;
  if (none_yet() && workers.all().size() < expected_ && now < *forming_since_ + gathering_) return {};
  if (auto const id = roll_.suspect(); id && workers.find(*id) && workers.all().size() > 1)
    return {.action = step::kind::give_up, .member = *id};
  if (copy_position const* const newest = roll_.newest())
    return {.action = step::kind::go_on, .newest = newest};
  if (!restorable) return {.action = step::kind::begin};
  finding_ = true;
  return {.action = step::kind::find};
}

EDL_INLINE bool worker_worlds::found() { return std::exchange(finding_, false); }

EDL_INLINE std::vector<std::uint32_t> worker_worlds::absent(membership const& workers, duration timeout,
                                                            time_point now) const {
  std::vector<std::uint32_t> all;
  // When the last missing worker is lost, the world begins, and the roll is empty.
  if (!awaited_since_ || roll_.empty()) return all;
  for (auto const& [id, m] : workers.all())
    if (!roll_.has(id, m.incarnation) && roll_.awaits(id) &&
        now - std::max(*awaited_since_, m.joined) > timeout)
      all.push_back(id);
  return all;
}

EDL_INLINE std::vector<std::uint32_t> worker_worlds::missed(membership const& workers, duration patience,
                                                            time_point now) const {
  std::vector<std::uint32_t> silent;
  bool waits = false;
  for (auto const& of : world_.members) {
    member const* const m = workers.find(of.id);
    if (!m) continue;
    auto const before = left_out_.find(of.id);
    int const times = before == left_out_.end() ? 1 : 1 << std::min(before->second, 10u);
    if (now - m->seen > patience * times) {
      silent.push_back(of.id);
    } else if (now - m->seen > detail::beats_apart || m->moved <= began_ || m->last.position % 2 == 1 ||
               now - m->moved < patience / 2) {
      return {};  // it may be silent, too; has not begun to train in this world; or computes
    } else {
      waits = true;
    }
  }
  bool const all_able =
      waits && std::ranges::all_of(silent, [&](std::uint32_t id) { return able_.contains(id); });
  return all_able ? silent : std::vector<std::uint32_t>();
}

EDL_INLINE bool worker_worlds::leave_out(std::uint32_t worker, membership const& workers) {
  if (!follow(worker, workers)) return false;
  ++left_out_[worker];
  return true;
}

EDL_INLINE void worker_worlds::excuse(duration absence, time_point now) {
  if (awaited_since_) *awaited_since_ = std::min(*awaited_since_ + absence, now);
}

EDL_INLINE std::vector<std::uint64_t> worker_worlds::begin(std::uint64_t number, membership const& workers,
                                                           std::uint64_t version, std::string const& restore,
                                                           time_point now) {
  began_ = now;
  world_ = roll_.form(number, workers, version, restore);
  world_.wanted = expected_;
  // A member that takes another's state drops its frozen versions, and a new one has none.
  std::set<std::uint32_t> current;
  for (auto const& m : world_.members)
    if (m.current) current.insert(m.id);
  for (auto& [held, who] : held_) std::erase_if(who, [&](std::uint32_t id) { return !current.contains(id); });
  std::erase_if(held_, [](auto const& v) { return v.second.empty(); });
  // The members that hold the world's first version frozen report it again, and it is written then.
  auto over = std::exchange(unwritten_, {});
  std::erase(over, world_.version);
  return over;
}

EDL_INLINE std::vector<std::uint32_t> worker_worlds::holders(std::uint64_t version) const {
  std::vector<std::uint32_t> all;
  for (auto const& m : world_.members)
    if (m.current || version > world_.version) all.push_back(m.id);
  return all;
}

EDL_INLINE void worker_worlds::freeze(std::uint64_t version) {
  auto const all = holders(version);
  held_[version] = {all.begin(), all.end()};
}

EDL_INLINE void worker_worlds::not_written(std::vector<std::uint64_t> const& versions) {
  unwritten_.insert(unwritten_.end(), versions.begin(), versions.end());
}

}  // namespace edl::master
