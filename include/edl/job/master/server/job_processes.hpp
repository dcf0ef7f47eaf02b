// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/base/platform/platform.hpp"
#include "edl/core/log.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/master/server/decision_loop.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::master {

/// How a job has ended for this master.
struct job_end {
  std::string failure = {};     ///< the reason if it has failed; empty: it is complete, or suspended
  std::string superseded = {};  ///< the reason if this master is superseded; empty: it is not
};

/// The processes of a job: passes the coordinator's orders to the platform, and the platform's events to the
/// coordinator. Its arguments must outlive it.
///
/// Thread safety: only on the node's thread, except the constructor and `result`.
class job_processes final : public platform::observer {
 public:
  /// `adopted`: for a job that is older than this master. No process may join before the platform has
  /// reported the running ones; then this is called with whether there are any. Empty: a new job.
  job_processes(server_options const& options, decision_loop& loop, std::function<void(bool any)> adopted,
                logger log);

  /// Sets the platform that starts and stops them; it must outlive this. Without one, users do.
  void use(platform::platform& p) { platform_ = &p; }

  void execute(replace_process const& c);
  void execute(start_process const& c);
  void execute(stop_process const& c);
  void execute(avoid_place const& c);
  void execute(evade_place const& c);

  void ended(platform::ending const& how, std::uint64_t number) override;
  void leaving(process_id who, std::string const& why) override;
  void pressed(std::map<std::uint32_t, std::string> const& workers) override;
  void moving(std::map<std::uint32_t, std::string> const& workers) override;
  void found(platform::findings const& what) override;
  std::string scale(platform::size_request const& wanted) override;
  void failed(std::string const& why) override { loop_.fail(why); }
  void suspend() override;
  void superseded(std::string const& why) override { end({.superseded = why}); }
  std::vector<process_id> left() override;

  /// Whether the running processes are not known yet, so that none may join.
  bool adopting() const { return adopting_; }

  /// Marks a process that learns that the job is over, and exits by itself.
  void comes_late(process_id who) { late_.insert(who); }

  /// Shows users what the job waits for; empty: nothing any more.
  void waits(std::string const& what) {
    if (platform_) platform_->waits(what);
  }

  /// Starts no more processes, and ignores their ends. Only the first call counts.
  void end(job_end how);
  bool over() const { return over_; }

  /// The argument of the first `end`. On any thread.
  std::shared_future<job_end> result() const { return result_; }

 private:
  void start(process_id who, std::optional<std::uint32_t> instead_of = {});
  void avoid(process_id who, std::string const& why);
  void reconcile(std::vector<process_id> const& running);

  server_options const& options_;
  decision_loop& loop_;
  coordinator& coordinator_;
  std::function<void(bool any)> adopted_;
  logger log_;
  platform::platform* platform_ = nullptr;
  bool adopting_, over_ = false;
  std::promise<job_end> end_;
  std::shared_future<job_end> result_ = end_.get_future().share();
  std::set<process_id> started_, late_;  // started by this master; marked by `comes_late`
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/job_processes.ipp"
#endif
