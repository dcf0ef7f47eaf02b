// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/cluster/controller/work_queue.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::controller {

EDL_INLINE void work_queue::check() const {
  invariant(due_.size() + working_ <= entries_.size(), "a key waits, or is being processed, once");
  invariant(slow_working_ <= working_, "slow keys at work are among those at work");
  invariant(slow_working_ <= options_.slow_at_once, "no more slow keys are at work than have places");
}

EDL_INLINE void work_queue::put(std::string const& key, entry& e, time_point at) {
  if (e.at) {
    if (*e.at <= at) return;
    due_.erase({*e.at, key});
  }
  invariant(!e.working, "a key that is being processed waits until that ends");
  e.at = at;
  bool const fresh = due_.emplace(at, key).second;
  invariant(fresh, "a key is due once");
}

EDL_INLINE void work_queue::add(std::string const& key, time_point at, bool urgent) {
  entry& e = entries_[key];
  e.removed = false;
  if (urgent) e.not_before = {};
  if (e.working)
    e.readd_at = std::min(e.readd_at.value_or(at), at);
  else
    put(key, e, std::max(at, e.not_before));
}

EDL_INLINE std::optional<std::string> work_queue::take(time_point now) {
  for (auto it = due_.begin(); it != due_.end() && it->first <= now; ++it) {
    entry& e = entries_.at(it->second);
    // A slow key that gets no place must not block the keys behind it.
    if (e.slow && slow_working_ >= options_.slow_at_once) continue;
    std::string key = it->second;
    due_.erase(it);
    e.at.reset();
    e.working = true;
    ++working_;
    slow_working_ += e.slow;
    check();
    return key;
  }
  return std::nullopt;
}

EDL_INLINE void work_queue::done(std::string const& key, time_point now, duration took, bool failed) {
  auto const it = entries_.find(key);
  if (it == entries_.end() || !it->second.working) return;
  entry& e = it->second;
  invariant(working_ > 0 && slow_working_ >= std::size_t(e.slow), "a finished key was at work");
  --working_;
  slow_working_ -= e.slow;
  e.working = false;
  e.slow = failed || took > options_.slow;
  auto const again = std::exchange(e.readd_at, {});
  if (e.removed) {
    entries_.erase(it);
    check();
    return;
  }
  e.failures = failed ? e.failures + 1 : 0;
  if (failed) {
    auto pause = options_.first_pause;
    for (int i = 1; i < e.failures && pause < options_.longest_pause; ++i) pause *= 2;
    e.not_before = now + std::min(pause, options_.longest_pause);
    put(key, e, e.not_before);
  } else {
    e.not_before = {};
    if (again) put(key, e, *again);
    // Keep the entry of a slow key, so that it counts as slow the next time.
    if (!again && !e.slow) entries_.erase(it);
  }
  check();
}

EDL_INLINE void work_queue::remove(std::string const& key) {
  auto const it = entries_.find(key);
  if (it == entries_.end()) return;
  if (it->second.at) due_.erase({*it->second.at, key});
  it->second.at.reset();
  it->second.removed = true;
  it->second.readd_at.reset();
  if (!it->second.working) entries_.erase(it);
  check();
}

EDL_INLINE std::optional<time_point> work_queue::next() const {
  for (auto const& [at, key] : due_)
    if (!entries_.at(key).slow || slow_working_ < options_.slow_at_once) return at;
  return std::nullopt;
}

}  // namespace edl::controller
