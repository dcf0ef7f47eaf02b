// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "edl/core/clock.hpp"

namespace edl::net::detail {

/// Calls a function at a time, unless this object has been destroyed by then, even if the timer has already
/// expired and its completion is still queued. Only on the node's thread.
class time_limit {
 public:
  time_limit(asio::any_io_executor const& on, time_point at, std::function<void()> expire);
  time_limit(time_limit const&) = delete;
  time_limit& operator=(time_limit const&) = delete;
  ~time_limit();

 private:
  std::shared_ptr<std::function<void()>> expire_;
  asio::steady_timer timer_;
};

}  // namespace edl::net::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/time_limit.ipp"
#endif
