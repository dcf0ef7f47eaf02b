// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/base/platform/platform.hpp"
#include "edl/base/platform/process.hpp"

namespace edl::platform {

/// Starts processes on this machine for a master that is one of them: they outlive it, and its successor
/// finds them. It plays the role of a cluster's API server. It obeys only a process that knows its
/// credential, which only masters get. It starts only servers and workers of its own program, with
/// `start_variables` in their environment. Thread safety: safe.
class launcher {
 public:
  /// `directory`: of its socket; must be private to this user. `program`, `command` and `said` as in
  /// `processes`. `on_end` gets the master's endings, from another thread; the master requests those of all
  /// others.
  launcher(net::node& on, std::string const& directory, std::string program, std::vector<std::string> command,
           std::function<void(ending const&)> on_end, line_reader* said = nullptr);
  ~launcher();

  std::string address() const;                                  ///< for `launched`
  net::token const& credential() const { return credential_; }  ///< for `launched`
  void start_master(environment const& env);
  void stop_master(std::chrono::milliseconds grace);
  void let_leave(pid_t pid, bool stop_requested);  ///< as in `processes`

  /// Stops everything that runs, workers first.
  void stop_all(std::chrono::milliseconds grace);

 private:
  asio::awaitable<void> handle(net::request& r);
  asio::awaitable<void> tell(net::request& r);
  asio::awaitable<void> stop_others(std::chrono::milliseconds grace);

  net::node& node_;
  net::token credential_ = net::token::random();
  std::function<void(ending const&)> on_end_;
  // On the node's thread: endings of all but masters, and the last start of each name.
  std::deque<ending> endings_;
  struct start {
    std::uint64_t order = 0;
    bool ended = false;
  };
  std::map<process_id, start> newest_;
  std::uint64_t last_start_ = 0;
  net::event ended_;
  std::unique_ptr<processes> processes_;
  asio::thread_pool stopper_{1};
  std::unique_ptr<net::listener> listener_;
};

/// The variables that a master may set for a process that it starts on its machine, besides the process's
/// role and number.
inline constexpr std::array<std::string_view, 5> start_variables{"EDL_JOB_NAME", "EDL_JOB_TOKEN",
                                                                 "EDL_PLATFORM", "MASTER_ADDR", "WORKER_NUM"};

/// The master's side of a `launcher`. It reports each ending once, except of processes that have been
/// restarted since: of these it only logs failures. Thread safety: as `platform`; the constructor on any
/// thread.
class launched final : public platform {
 public:
  /// `to` must outlive it. `address` and `credential` are the launcher's. `common`: the environment of every
  /// process besides its role and id, out of `start_variables`. `seen`: endings that an earlier master has
  /// handled.
  launched(net::node& on, std::string const& address, net::token const& credential, environment common,
           std::uint64_t seen, observer& to);

  void start(process_id who, std::optional<std::uint32_t> instead_of) override;
  void stop(process_id who, std::chrono::milliseconds grace) override;
  void stop_all(std::chrono::milliseconds grace) override;

 private:
  asio::awaitable<void> follow();
  void succeeded(ending const& how);
  void order(std::uint16_t method, std::string message);
  asio::awaitable<void> deliver();

  net::node& node_;
  std::shared_ptr<net::channel> launcher_;
  environment common_;
  std::uint64_t seen_, orders_given_;
  std::map<process_id, std::uint64_t> newest_;  // numbers of this master's start orders
  observer& to_;
  std::deque<net::outgoing> orders_;  // one after the other, each until it is answered; on the node's thread
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/launcher.ipp"
#endif
