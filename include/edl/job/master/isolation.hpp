// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// Distinguishes the isolation of the master from the loss of its members. If none of several members is
/// heard for longer than two heartbeats, the master itself may be cut off. Then no member is given up for its
/// silence, for up to `longest`. Once members are heard again, that continues until the others may have
/// reconnected. Thread safety: distinct objects: safe. Shared objects: unsafe.
class isolation {
 public:
  /// `silence`: the time after which a silent member is lost.
  isolation(duration silence, duration longest) : silence_(silence), longest_(longest) {}

  /// The result of `look`.
  struct news {
    bool began = false;                 ///< the master may be cut off from now on
    std::optional<duration> absence{};  ///< it is over, after this time
  };

  /// Call at each tick. `newest`: when any member was heard last; empty: there is none.
  news look(std::optional<time_point> newest, std::size_t members, time_point now);

  /// Call if the master itself was paused for this long, and could not be reached.
  void held_up(duration pause, time_point now);

  /// Whether none of this many members should be given up for its silence now. A single one may be, unless
  /// the others have left while all were silent.
  bool suspected(std::size_t members, time_point now) const;

  /// Whether a member that was last heard at `seen` may still reconnect by itself.
  bool finds_back(time_point seen, time_point now) const { return now < back_until_ && seen <= heard_again_; }

  bool lasts() const { return lasts_; }                                        ///< as of the last look
  duration quiet(time_point now) const { return now - heard_.value_or(now); }  ///< since any member was heard

 private:
  duration silence_, longest_;
  std::optional<time_point> heard_;          // any member
  time_point heard_again_{}, back_until_{};  // after an absence
  bool lasts_ = false;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/isolation.ipp"
#endif
