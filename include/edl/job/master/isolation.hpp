// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// Tells an absence of the master from an absence of its members. When none of several members is heard for
/// longer than two heartbeats take, the master itself may be cut off. What its members cannot tell meanwhile
/// is held against nobody, for up to `longest`. Once they are heard again, that goes on until their
/// connections may have found back. Thread safety: distinct objects: safe. Shared objects: unsafe.
class isolation {
 public:
  /// `silence`: after which a member that is not heard counts as lost.
  isolation(duration silence, duration longest) : silence_(silence), longest_(longest) {}

  /// What a look has found.
  struct news {
    bool began = false;                 ///< the master may be cut off from now on
    std::optional<duration> absence{};  ///< it is over, after so long
  };

  /// To be called at each tick. `newest`: when any member was heard last; nothing: there is none.
  news look(std::optional<time_point> newest, std::size_t members, time_point now);

  /// The master itself stood still for so long, and nobody could reach it.
  void held_up(duration pause, time_point now);

  /// Whether none of so many members can be blamed for its silence now. One alone can, unless the others have
  /// left while all of them were silent.
  bool suspected(std::size_t members, time_point now) const;

  /// Whether the connection of a member that was last heard at `seen` may still find back by itself.
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
