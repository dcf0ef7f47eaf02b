// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "edl/base/net/node.hpp"
#include "edl/base/net/time_limit.hpp"
#include "edl/core/clock.hpp"

namespace edl::net {
namespace detail {

/// Says, once, that a file is waited for, and for how long when it is there. On the node's thread.
class slow_file {
 public:
  slow_file(node& on, std::string file, std::chrono::milliseconds timeout);
  slow_file(slow_file const&) = delete;
  slow_file& operator=(slow_file const&) = delete;
  ~slow_file();

 private:
  node& node_;
  std::string file_;
  time_point since_ = clock::now();
  bool announced_ = false;
  time_limit limit_;
};

}  // namespace detail

/// A thread for what waits for storage: one piece of work after the other. Whoever calls the node is answered
/// meanwhile. Thread safety: only on the node's thread.
class disk {
 public:
  explicit disk(node& on, std::chrono::milliseconds timeout = std::chrono::seconds(5))
      : node_(on), timeout_(timeout) {}

  /// Runs `work` there, and goes on here; throws what it throws. After `timeout` the node's log says that
  /// `file` is waited for; empty: it may well take long. GCC 12 wants a name for what is given.
  asio::awaitable<void> run(std::string file, std::function<void()> work);

 private:
  node& node_;
  std::chrono::milliseconds timeout_;
  asio::thread_pool thread_{1};
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/disk.ipp"
#endif
