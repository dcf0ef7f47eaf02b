// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/cli/status_line.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"

namespace edl::train {

using metric_values = std::vector<std::pair<std::string, double>>;

/// A job's progress and its model's metrics, for display.
struct progress_numbers {
  master::job_progress at;
  std::optional<std::uint64_t> records;  ///< in all; empty: unlimited
  double rate = 0;                       ///< records per second; 0: unknown
  double loss = 0;                       ///< the last one reported by a worker; 0: none
  metric_values metrics;                 ///< of the last evaluation
};

/// Shows a job's progress: as one redrawn line if possible, otherwise as periodic log lines. Thread safety:
/// distinct objects: safe. Shared objects: unsafe.
class progress_view {
 public:
  /// `show`: redraws the line; empty: log lines.
  progress_view(job const& j, logger log, cli::status_sink show = {});
  progress_view(progress_view const&) = delete;
  progress_view& operator=(progress_view const&) = delete;
  ~progress_view() { clear(); }

  /// May be called at any rate; it shows something a few times a second if the line is redrawn, otherwise
  /// every ten seconds. Returns the log line for what it has shown; empty: nothing was shown.
  std::string update(master::job_progress const& p, time_point now);

  /// Sets what had been done before this process started, if known. Call before the first `update`.
  void goes_on_from(ledger const& applied);

  /// Records a complete evaluation of this version, over `records` records.
  void evaluated(metric_values of, std::uint64_t version, std::uint64_t records) {
    last_ = {std::move(of), version, records};
  }

  /// Removes the redrawn line.
  void clear();

  /// Whether the line is redrawn, that is, on a terminal.
  bool watched() const { return bool(show_); }

  struct evaluation {
    metric_values metrics;
    std::uint64_t version = 0, records = 0;
  };

  double loss() const { return loss_; }                            ///< the last one; 0: none
  evaluation const& last_evaluation() const { return last_; }      ///< with no records: there was none
  double seconds(time_point now) const;                            ///< since the first look
  std::uint64_t records_before() const { return first_records_; }  ///< that were done before

 private:
  job const& job_;
  logger log_;
  cli::status_sink show_;
  time_point shown_{}, since_{}, first_{};
  std::uint64_t records_ = 0, first_records_ = 0;  // at `since_`, before this process did anything
  double rate_ = 0;                                // records a second, smoothed
  double loss_ = 0;
  bool begun_ = false;  // something was leased, or done
  evaluation last_;
};

/// "tasks 24/236, records 12288/120000, 1873 records/s, loss 0.113, version 192, 0:57 left"
std::string describe(master::job_progress const& p, double records_per_second);

/// The same for a terminal, by its width: "epoch 1/2  10 %  1873 records/s  loss 0.113  accuracy 0.97  0:57
/// left". Until the time can be estimated it is `--:--`.
cli::status_line status_of(job const& j, progress_numbers const& n);

/// The final state: "version 192, loss 0.113"; without the loss if none was reported.
std::string outcome(master::job_progress const& p);

/// Seconds as `0:57`, `12:03` or `1:02:03`.
std::string clock_text(double seconds);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/progress.ipp"
#endif
