// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/cli/status_line.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/dashboard/dashboard.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"
#include "edl/job/train/observe/history_log.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/job/train/observe/progress.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// What is told of a job, and what follows from its evaluations, whether its processes are one or many.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class reporter {
 public:
  /// `from`: the version that the job begins at (`metric_history`). `show`: as `progress_view`'s. `page`: of
  /// --dashboard. All references outlive this.
  reporter(program& p, job const& j, std::uint64_t from, cli::status_sink show, logger log,
           dashboard_context page = {});

  /// How far the job is, as often as you like: where a page shows it.
  void look(master::coordinator const& decisions, master::job_progress const& p, time_point now);

  /// A line of the job's decisions: it is logged, and the page shows it.
  void say(master::log_line const& what);

  /// An evaluation is complete: it is shown and told. Whether its version is the best so far, and its model
  /// is to be written.
  bool evaluated(master::evaluation_result const& r, master::coordinator const& decisions);

  /// The records that this version has most trouble with, an array of JSON: the page shows them.
  void worst(std::uint64_t version, std::string records) {
    if (page_) page_->worst(version, std::move(records));
  }

  /// The result counts: the model is written, if it is the best. Returns what keeps it, for a thread that may
  /// wait for a disk, and returns true when the job is to end early.
  std::function<bool()> judged(master::evaluation_result const& r);

  /// The version that has ended the job early.
  std::optional<std::uint64_t> stopped_at() const;

  /// The last evaluation: that this process has heard of, or else that of one before it.
  std::optional<metric_history::entry> evaluation() const;

  /// The history in at most some dozen lines, an array of JSON; empty where nobody wants to be told.
  std::string recent() const { return recent_ ? recent_->history() : std::string(); }

  /// The versions that were judged before, where the job judges; the newest.
  std::optional<std::uint64_t> newest_judged() const;

  /// Nothing is shown any more. Says what was counted, and which version is the best.
  void close(master::coordinator const& decisions) { close(decisions, decisions.progress()); }
  void close(master::coordinator const& decisions, master::job_progress const& p);

  /// After that: the job was stopped, `how`; `command` as in `ended_job`.
  void stopped(std::string const& how, std::vector<std::string> const& command) const;

  /// After that: the job is complete. `last`: a line before its summary, where a job has a name.
  void complete(master::coordinator const& decisions, std::vector<std::string> const& command,
                std::string const& last = {}) const;

  progress_view& view() { return view_; }
  history_log& history() { return log_of_steps_; }

 private:
  program& program_;
  job const& job_;
  logger log_;
  std::optional<metric_history> history_;
  std::unique_ptr<job_feed> recent_;
  std::unique_ptr<dashboard> page_;  // none: nobody wants to see it
  history_log log_of_steps_;
  progress_view view_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/reporter.ipp"
#endif
