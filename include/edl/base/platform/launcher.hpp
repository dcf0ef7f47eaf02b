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

/// Starts processes of this machine for a master that is one of them: they outlive it, and its successor
/// finds them. What a cluster's API server is to a master there. It obeys only a process that knows its
/// credential, which masters alone are given. It starts nothing but servers and workers of its own program,
/// with `start_variables` in their environment. Thread safety: safe.
class launcher {
 public:
  /// `directory`: where its socket stands, which must be this user's alone. `program`, `command` and `said`
  /// as in `processes`. `on_end` is told of the master's ends, from another thread; those of all others the
  /// master asks for.
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
  // On the node's thread: ends of all but masters, and who was started last by each name.
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

/// What a master may put into the environment of a process that it has started on its machine, besides the
/// process' role and number.
inline constexpr std::array<std::string_view, 5> start_variables{"EDL_JOB_NAME", "EDL_JOB_TOKEN",
                                                                 "EDL_PLATFORM", "MASTER_ADDR", "WORKER_NUM"};

/// The master's side of a `launcher`. It tells of each end once, and of none of who has been started again
/// since: of these it logs those that failed. Thread safety: as `platform`; the constructor on any thread.
class launched final : public platform {
 public:
  /// `to` outlives it. `address` and `credential` as the launcher has them. `common`: what every process gets
  /// in its environment beside its role and id, of `start_variables`. `seen`: endings that an earlier master
  /// has dealt with.
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
  std::map<process_id, std::uint64_t> newest_;  // by which this master has started them
  observer& to_;
  std::deque<net::outgoing> orders_;  // one after the other, each until it is answered; on the node's thread
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/launcher.ipp"
#endif
