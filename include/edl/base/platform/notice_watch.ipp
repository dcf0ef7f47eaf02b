// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/base/platform/notice_watch.hpp"
#include "edl/core/inline.hpp"

namespace edl::platform {
namespace detail {

inline constexpr std::size_t most_missed = 3;
inline constexpr std::chrono::seconds ask_absent{60};

}  // namespace detail

EDL_INLINE notice_watch::notice_watch(std::unique_ptr<notice_source> from, logger log)
    : from_(std::move(from)), log_(std::move(log)), thread_([this] { run(); }) {}

EDL_INLINE notice_watch::~notice_watch() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

EDL_INLINE std::string notice_watch::notice() const {
  std::lock_guard const lock(mutex_);
  return notice_;
}

EDL_INLINE bool notice_watch::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, time, [this] { return stopped_.load(); });
}

EDL_INLINE void notice_watch::run() {
  do take(from_->look([this] { return stopped_.load(); }));
  while (pause(absent_ ? detail::ask_absent : from_->interval()));
}

EDL_INLINE void notice_watch::take(notice_source::report const& r) {
  if (stopped_) return;
  if (!r.answered) {
    if (looked_ || ++missed_ != detail::most_missed) return;
    absent_ = true;
    return log_.info(
        fmt::format("{} does not answer: this process gets no notice before its machine is "
                    "taken away",
                    from_->name()));
  }
  absent_ = false;
  if (!std::exchange(looked_, true) && !r.notice.empty()) {
    first_ = r.notice;
    return log_.warning(
        fmt::format("this process was started on a machine that is about to go, and works on "
                    "there: {}",
                    r.notice));
  }
  if (r.notice.empty() || r.notice == first_) return;
  std::lock_guard const lock(mutex_);
  if (std::exchange(notice_, r.notice).empty()) log_.warning("notice: " + r.notice);
}

}  // namespace edl::platform
