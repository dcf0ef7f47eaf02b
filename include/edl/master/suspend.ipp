// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

// A job ends so that it can go on later. The next generation is one in which nothing is leased: what a worker
// has in hand is void, who keeps the model agrees on a state, and that is written.
namespace edl::master {

EDL_INLINE void coordinator::suspend(time_point now) {
  if (over() || suspending_) return;
  suspending_ = now;
  say(severity::info, "Suspending: nothing is leased any more");
  if (!trains() || !options_.final_checkpoint) return suspended_with({});
  if (leasing()) regroup(now);
  keep_state(now);
}

// Whoever has a state newer than the newest checkpoint may still tell of it.
EDL_INLINE bool coordinator::state_may_come(time_point now) const {
  if (checkpoints_.current()) return true;  // it ends by itself
  if (now - *suspending_ > options_.suspension) return false;
  if (phase_ != phase::forming) return true;
  bool const awaited = recovered_ && worlds_.none_yet() && !generations_.ever_configured();
  if (options_.replicas) return awaited || (!worlds_.none_yet() && !workers_.all_gone());
  return generations_.awaits_past() || awaited;
}

EDL_INLINE void coordinator::keep_state(time_point now) {
  if (over() || state_may_come(now)) return;
  bool const trained = generations_.ever_configured() || !worlds_.none_yet() || recovered_;
  suspended_with(trained ? "those that have the newest state do not tell it" : "");
}

EDL_INLINE void coordinator::suspended_with(std::string const& reason) {
  if (!reason.empty())
    say(severity::error, fmt::format("{}: what is trained since the newest checkpoint is lost", reason));
  phase_ = phase::suspended;
  commands_.emplace_back(suspend_job{});
}

}  // namespace edl::master
