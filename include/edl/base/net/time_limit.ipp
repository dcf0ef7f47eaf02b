// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/base/net/time_limit.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"

namespace edl::net::detail {

EDL_INLINE time_limit::time_limit(asio::any_io_executor const& on, time_point at,
                                  std::function<void()> expire)
    : expire_(std::make_shared<std::function<void()>>(std::move(expire))), timer_(on, at) {
  timer_.async_wait([expire = expire_](asio::error_code failed) {
    if (!failed && *expire) (*expire)();
  });
}

EDL_INLINE time_limit::~time_limit() { *expire_ = nullptr; }

}  // namespace edl::net::detail
