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

/// Reports a job's progress, and acts on its evaluations, for jobs of one or of many processes. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class reporter {
 public:
  /// `from`: the version at which the job begins (`metric_history`). `show`: as in `progress_view`. `page`:
  /// of --dashboard. All references must outlive this.
  reporter(program& p, job const& j, std::uint64_t from, cli::status_sink show, logger log,
           dashboard_context page = {});

  /// Updates the job's progress; may be called at any rate.
  void look(master::coordinator const& decisions, master::job_progress const& p, time_point now);

  /// Logs a line about the job's decisions, and shows it on the page.
  void say(master::log_line const& what);

  /// Call when an evaluation is complete: shows and logs it, and calls the model's `on_evaluation`. Returns
  /// whether its version is the best so far, so that its model must be written.
  bool evaluated(master::evaluation_result const& r, master::coordinator const& decisions);

  /// The records with the highest loss in this version, a JSON array, for the page.
  void worst(std::uint64_t version, std::string records) {
    if (page_) page_->worst(version, std::move(records));
  }

  /// Call when the result is final: if it is the best, the model has been written. Returns a function that
  /// saves it, for a thread that may block on a disk; the function returns what follows from it.
  std::function<master::verdict()> judged(master::evaluation_result const& r);

  /// The version that has ended the job early.
  std::optional<std::uint64_t> stopped_at() const;

  /// The factors of the learning rate that evaluations have decided.
  master::rate_factors rates() const { return history_ ? history_->rates() : master::rate_factors(); }

  /// The last evaluation of this process, or else of an earlier one.
  std::optional<metric_history::entry> evaluation() const;

  /// The history in at most some dozen lines, as a JSON array; empty if it is not reported.
  std::string recent() const { return recent_ ? recent_->history() : std::string(); }

  /// The newest version that was judged before, if the job judges evaluations.
  std::optional<std::uint64_t> newest_judged() const;

  /// Ends the display. Logs the account, and the best version.
  void close(master::coordinator const& decisions) { close(decisions, decisions.progress()); }
  void close(master::coordinator const& decisions, master::job_progress const& p);

  /// Call after that if the job was stopped, `how`; `command` as in `ended_job`.
  void stopped(std::string const& how, std::vector<std::string> const& command) const;

  /// Call after that if the job is complete. `last`: a line before its summary, if the job has a name.
  void complete(master::coordinator const& decisions, std::vector<std::string> const& command,
                std::string const& last = {}) const;

  progress_view& view() { return view_; }
  history_log& history() { return log_of_steps_; }

 private:
  program& program_;
  job const& job_;
  logger log_;
  /// Why the model's `on_evaluation` wants the job to stop, or empty.
  std::string ask_model(master::evaluation_result const& r,
                        std::vector<std::pair<std::string, double>> const& metrics);

  history_log::options log_options() const;

  std::optional<metric_history> history_;
  std::unique_ptr<job_feed> recent_;
  std::unique_ptr<dashboard> page_;  // null: without --dashboard
  history_log log_of_steps_;
  progress_view view_;
  bool hook_failed_ = false;
  std::pair<std::uint64_t, std::string> stop_;  // the last evaluated version, and what its hook has returned
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/reporter.ipp"
#endif
