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

/// Logs once that the process waits for a file, and afterwards for how long it waited. On the node's thread.
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

/// A thread for blocking storage operations, one after the other. Meanwhile the node continues to serve
/// requests. Thread safety: only on the node's thread.
class disk {
 public:
  explicit disk(node& on, std::chrono::milliseconds timeout = std::chrono::seconds(5))
      : node_(on), timeout_(timeout) {}

  /// Runs `work` there, and resumes here; throws what it throws. After `timeout` it logs that it waits for
  /// `file`; empty: no log, because it may take long. Pass named objects, because of GCC 12.
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
