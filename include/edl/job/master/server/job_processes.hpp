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
  std::string failure = {};     ///< why it has failed; empty: it is complete, or suspended
  std::string superseded = {};  ///< why it is another master's; empty: it is not
};

/// The processes of a job. The platform starts and stops those that the coordinator wants, and tells what
/// becomes of them: this makes each the other's. What it is given outlives it.
///
/// Thread safety: only on the node's thread, but for the constructor and `result`.
class job_processes final : public platform::observer {
 public:
  /// `adopted`: of a job that is older than this master. Nobody takes part in it before the platform has told
  /// who runs; then this is called, with whether anybody does. Empty: the job is not.
  job_processes(server_options const& options, decision_loop& loop, std::function<void(bool any)> adopted,
                logger log);

  /// From now on this starts and stops them, and outlives this. Without one, people do.
  void use(platform::platform& p) { platform_ = &p; }

  void execute(replace_process const& c);
  void execute(start_process const& c);
  void execute(stop_process const& c);
  void execute(avoid_place const& c);

  void ended(platform::ending const& how, std::uint64_t number) override;
  void leaving(process_id who, std::string const& why) override;
  void pressed(std::map<std::uint32_t, std::string> const& workers) override;
  void found(platform::findings const& what) override;
  std::string scale(platform::size_request const& wanted) override;
  void failed(std::string const& why) override { loop_.fail(why); }
  void suspend() override;
  void superseded(std::string const& why) override { end({.superseded = why}); }
  std::vector<process_id> left() override;

  /// Until it is known who runs, nobody may take part.
  bool adopting() const { return adopting_; }

  /// It hears that the job is over, and ends by itself.
  void comes_late(process_id who) { late_.insert(who); }

  /// Shows people what the job waits for; empty: nothing any more.
  void waits(std::string const& what) {
    if (platform_) platform_->waits(what);
  }

  /// Nobody is started any more, and who ends is not missed. The first time counts.
  void end(job_end how);
  bool over() const { return over_; }

  /// What `end` was first told. On any thread.
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
  std::set<process_id> started_, late_;  // by this master; `comes_late`
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/job_processes.ipp"
#endif
