// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/master/watchdog.hpp"

namespace edl::master {

EDL_INLINE bool watchdog::look(std::uint64_t mark, time_point now) {
  if (mark_ != mark) {
    mark_ = mark;
    since_ = now;
    told_.reset();
    return false;
  }
  if (!stuck(now) || (told_ && now - *told_ < pause_)) return false;
  pause_ = told_ ? std::min(2 * pause_, 10 * patience_) : patience_;
  told_ = now;
  return true;
}

}  // namespace edl::master
