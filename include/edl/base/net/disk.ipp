// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/co_spawn.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "edl/base/net/disk.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {
namespace detail {

inline auto whole_seconds_since(time_point t) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock::now() - t).count();
}

EDL_INLINE slow_file::slow_file(node& on, std::string file, std::chrono::milliseconds timeout)
    : node_(on), file_(std::move(file)), limit_(on.executor(), since_ + timeout, [this] {
        if (file_.empty()) return;
        announced_ = true;
        node_.options().log.warning(
            fmt::format("the disk is slow: {} has taken {} s so far", file_, whole_seconds_since(since_)));
      }) {}

EDL_INLINE slow_file::~slow_file() {
  if (announced_)
    node_.options().log.warning(fmt::format("the disk took {} s for {}", whole_seconds_since(since_), file_));
}

inline asio::awaitable<void> call(std::function<void()> const& work) {
  work();
  co_return;
}

}  // namespace detail

EDL_INLINE asio::awaitable<void> disk::run(std::string file, std::function<void()> work) {
  detail::slow_file const watched(node_, std::move(file), timeout_);
  co_await asio::co_spawn(thread_, detail::call(work), asio::use_awaitable);
}

}  // namespace edl::net
