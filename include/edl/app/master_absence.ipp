// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/app/master_absence.hpp"
#include "edl/core/inline.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::chrono::seconds announced_after{3}, announced_every{5};

inline long long seconds_of(duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

}  // namespace detail

EDL_INLINE std::string master_absence::answered(time_point now) {
  auto const since = std::exchange(since_, std::nullopt);
  if (!std::exchange(announced_, std::nullopt)) return {};
  return fmt::format("the master answers again, after {} s", detail::seconds_of(now - *since));
}

EDL_INLINE std::string master_absence::missed(std::string const& why, time_point began, time_point now) {
  if (!since_) since_ = began;
  why_ = why;
  if (now - *since_ < detail::announced_after || (announced_ && now - *announced_ < detail::announced_every))
    return {};
  announced_ = now;
  return fmt::format(
      "waits for the master, which has not answered for {} s; gives up after {} s "
      "(--master_timeout): {}",
      detail::seconds_of(now - *since_), timeout_.count(), why);
}

EDL_INLINE std::string master_absence::reason() const {
  return fmt::format("the master was away for longer than --master_timeout={} s: {}", timeout_.count(), why_);
}

}  // namespace edl::app
