// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "edl/core/inline.hpp"
#include "edl/job/master/speed_log.hpp"

namespace edl::master {

EDL_INLINE void speed_log::completed(std::uint32_t worker, std::uint64_t records, time_point now) {
  if (workers_.insert(worker).second) interrupted();
  if (!since_) {
    since_ = now;
    return;
  }
  records_ += records;
  ++tasks_;
  seen_.insert(worker);
  // A worker that stopped unnoticed would make the job look slower, so wait until each has made progress.
  if (seen_.size() < workers_.size()) return;
  seen_.clear();
  duration const time = now - *since_;
  if (tasks_ < options_.tasks || time < options_.least) return;
  remember(std::uint32_t(workers_.size()), double(records_) / std::chrono::duration<double>(time).count());
  if (time < options_.most) return;
  interrupted();
  since_ = now;
}

EDL_INLINE void speed_log::gone(std::uint32_t worker) {
  if (workers_.erase(worker)) interrupted();
}

EDL_INLINE void speed_log::interrupted() {
  since_.reset();
  seen_.clear();
  records_ = tasks_ = 0;
}

EDL_INLINE void speed_log::remember(std::uint32_t size, double speed) {
  speeds_[size] = speed;
  turns_[size] = ++turn_;
  if (speeds_.size() <= options_.sizes) return;
  auto const oldest = std::ranges::min_element(turns_, {}, [](auto const& t) { return t.second; });
  speeds_.erase(oldest->first);
  turns_.erase(oldest);
}

}  // namespace edl::master
