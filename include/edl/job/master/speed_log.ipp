// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "edl/core/inline.hpp"
#include "edl/job/master/speed_log.hpp"

namespace edl::master {

EDL_INLINE void speed_log::completed(std::uint32_t worker, std::uint64_t records, time_point now) {
  if (workers_.insert(worker).second) interrupted();
  auto const [at, fresh] = parts_.try_emplace(worker, part{now, now});
  if (fresh) return;
  at->second.last = now;
  at->second.records += records;
  ++tasks_;
  seen_.insert(worker);
  // A worker that stopped unnoticed would make the job look slower, so wait until each has made progress.
  if (seen_.size() < workers_.size()) return;
  seen_.clear();
  time_point began = now;
  double speed = 0;
  for (auto const& [id, p] : parts_) {
    if (p.last == p.first) return;
    began = std::min(began, p.first);
    speed += double(p.records) / std::chrono::duration<double>(p.last - p.first).count();
  }
  if (tasks_ < options_.tasks || now - began < options_.least) return;
  remember(std::uint32_t(workers_.size()), speed);
  if (now - began < options_.most) return;
  tasks_ = 0;
  for (auto& [id, p] : parts_) p = {p.last, p.last};
}

EDL_INLINE void speed_log::gone(std::uint32_t worker) {
  if (workers_.erase(worker)) interrupted();
}

EDL_INLINE void speed_log::interrupted() {
  parts_.clear();
  seen_.clear();
  tasks_ = 0;
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
