// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "edl/net/channel.hpp"
#include "edl/net/event.hpp"
#include "edl/net/listener.hpp"
#include "edl/net/node.hpp"
#include "edl/platform/platform.hpp"
#include "edl/platform/process.hpp"

namespace edl::platform {

/// Starts processes of this machine for a master that is one of them: they outlive it, and its successor
/// finds them. What a cluster's API server is to a master there. Thread safety: safe.
class launcher {
 public:
  /// `program` and `command` as in `processes`. `on_end` is told of the master's ends, from another thread;
  /// those of all others the master asks for.
  launcher(net::node& on, std::string program, std::vector<std::string> command,
           std::function<void(ending const&)> on_end);
  ~launcher();

  std::string address() const;  ///< for `launched`
  void start_master(environment const& env);
  void stop_master(std::chrono::milliseconds grace);

  /// Stops everything that runs, workers first.
  void stop_all(std::chrono::milliseconds grace);

 private:
  asio::awaitable<void> handle(net::request& r);
  asio::awaitable<void> tell(net::request& r);
  asio::awaitable<void> stop_others(std::chrono::milliseconds grace);

  net::node& node_;
  std::function<void(ending const&)> on_end_;
  std::deque<ending> endings_;  // of all but masters, on the node's thread
  net::event ended_;
  std::unique_ptr<processes> processes_;
  asio::thread_pool stopper_{1};
  std::unique_ptr<net::listener> listener_;
};

/// The master's side of a `launcher`. Thread safety: only on the node's thread; the constructor on any.
class launched {
 public:
  /// `seen`: endings that an earlier master has dealt with. `on_end` is told of each that follows, with its
  /// number; `on_start`, once all until now have been told, of what runs.
  launched(net::node& on, std::string const& address, std::uint64_t seen,
           std::function<void(ending const&, std::uint64_t number)> on_end,
           std::function<void(std::vector<instance> const& running)> on_start);

  void start(instance who, environment const& env);
  void stop(instance who, std::chrono::milliseconds grace);

  /// Stops all but the master and returns when they have ended. On a thread that is not the node's.
  void stop_all(std::chrono::milliseconds grace);

 private:
  asio::awaitable<void> follow();
  void call(std::uint16_t method, std::string message);

  net::node& node_;
  std::shared_ptr<net::channel> launcher_;
  std::uint64_t seen_;
  std::function<void(ending const&, std::uint64_t)> on_end_;
  std::function<void(std::vector<instance> const&)> on_start_;
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/platform/launcher.ipp"
#endif
