// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/log.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/master/server/decision_loop.hpp"
#include "edl/job/master/server/handlers.hpp"
#include "edl/job/master/server/job_processes.hpp"
#include "edl/job/master/server/keeper_calls.hpp"
#include "edl/job/master/server/model_files.hpp"
#include "edl/job/master/server/model_keepers.hpp"
#include "edl/job/master/server/model_source.hpp"
#include "edl/job/master/server/orders.hpp"
#include "edl/job/master/server/server_options.hpp"
#include "edl/job/master/watchdog.hpp"

namespace edl::master {

/// The master's calls to the process around it, all on the node's thread.
struct callbacks {
  /// With `job_options::judges`: returns whether the version is the best so far, so that its model must be
  /// written.
  std::function<bool(evaluation_result const&)> evaluated;
  /// A result is final: if it is the best, the model has been written. Returns a function that saves it, for
  /// a thread that may block on a disk; the function returns what follows from it.
  std::function<std::function<verdict()>(evaluation_result const&)> judged = {};
  std::function<void(log_line const&)> said = {};  ///< in place of the log
  std::function<void(bool any)> adopted = {};      ///< as in `job_processes`
  /// A task of an evaluation counts; `worst` is the worker's text about it. Called before `evaluated`.
  std::function<void(std::uint32_t task, std::string const& worst)> inspected = {};
};

/// Connects the coordinator to the network: calls and the clock become events, commands become calls to the
/// servers. Thread safety: only on the node's thread, `handle` included; the constructor on any.
class server {
 public:
  server(net::node& on, server_options options, callbacks around, logger log);

  /// A listener's handler.
  asio::awaitable<void> handle(net::request& r) { return handlers_.handle(r); }

  /// The platform's events, and the end of the job.
  job_processes& processes() { return processes_; }

  /// Drives the clock; runs until the job is over.
  asio::awaitable<void> tick();

  /// Starts no more tasks: the job ends as if there were no others. `at`: as in `coordinator::stop`.
  void stop(std::uint64_t at);

  /// As `coordinator::set_rates`.
  void set_rates(rate_factors rates) { coordinator_.set_rates(std::move(rates)); }

  /// Fails the job with a reason of the process around it.
  void fail(std::string const& reason) { loop_.fail(reason); }

  /// Sets the master's addresses, for its successor.
  void listens_at(std::vector<std::string> addresses) { loop_.listens_at(std::move(addresses)); }

  /// Calls `work` once the journal contains all decisions so far: immediately, if it does.
  void when_kept(std::function<void()> work) { loop_.when_kept(std::move(work)); }

  coordinator const& decisions() const { return loop_.decisions(); }

 private:
  void execute(find_restore_point const& c);
  void execute(avoid_place const& c) { processes_.execute(c); }
  void execute(evade_place const& c) { processes_.execute(c); }
  void execute(configure_servers const& c) { calls_.configure(c); }
  void execute(ask_version const& c);
  void execute(write_checkpoint const& c);
  void execute(release_frozen const& c);
  void execute(replace_process const& c) { processes_.execute(c); }
  void execute(start_process const& c) { processes_.execute(c); }
  void execute(stop_process const& c) { processes_.execute(c); }
  void execute(evaluation_done const& c);
  void execute(write_model const& c);
  void execute(finish_job const&);
  void execute(suspend_job const&) { end({}); }
  void execute(fail_job const& c) { end(c.reason); }
  void execute(log_line const& c) { around_.said ? around_.said(c) : log_.log(c.level, c.text); }

  asio::awaitable<void> judge(evaluation_result of, bool best);
  asio::awaitable<void> write(write_model c);
  asio::awaitable<void> finish();
  void end(std::string const& error);
  void watch_steps(time_point now);
  std::string waits(time_point now) const;

  net::node& node_;
  server_options options_;
  callbacks around_;
  logger log_;
  decision_loop loop_;
  coordinator& coordinator_;
  job_processes processes_;
  model_keepers keepers_;
  orders orders_;
  keeper_calls calls_;
  model_source source_;
  model_files files_;
  handlers handlers_;
  watchdog watchdog_;
  std::optional<std::string> shown_;  // of what is waited for
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/server.ipp"
#endif
