// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/master/watchdog.hpp"

namespace edl::master {

EDL_INLINE bool watchdog::look(std::uint64_t mark, time_point now) {
  if (mark_ != mark) {
    mark_ = mark;
    since_ = now;
    announced_.reset();
    return false;
  }
  if (!stuck(now) || (announced_ && now - *announced_ < pause_)) return false;
  pause_ = announced_ ? std::min(2 * pause_, 10 * timeout_) : timeout_;
  announced_ = now;
  return true;
}

}  // namespace edl::master
