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

/// How far a job is, and what is known of its model, for a person.
struct progress_numbers {
  master::job_progress at;
  std::optional<std::uint64_t> records;  ///< that there are to be in all; nothing: without end
  double rate = 0;                       ///< records a second; 0: not known
  double loss = 0;                       ///< the last one that a worker told of; 0: none
  metric_values metrics;                 ///< of the last evaluation
};

/// How far a job is: where there is a place for it one line that is redrawn, otherwise a log line now and
/// then. Thread safety: distinct objects: safe. Shared objects: unsafe.
class progress_view {
 public:
  /// `show`: where the line is redrawn; empty: nowhere.
  progress_view(job const& j, logger log, cli::status_sink show = {});
  progress_view(progress_view const&) = delete;
  progress_view& operator=(progress_view const&) = delete;
  ~progress_view() { clear(); }

  /// Call it as often as you like; it shows something a few times a second where the line is redrawn, else
  /// every ten seconds. The log line that stands for what it has shown; empty: nothing was shown.
  std::string update(master::job_progress const& p, time_point now);

  /// What had been done before this process had any part in it, where that is known. Before the first look.
  void goes_on_from(ledger const& applied);

  /// An evaluation is complete: of this version, over so many records.
  void evaluated(metric_values of, std::uint64_t version, std::uint64_t records) {
    last_ = {std::move(of), version, records};
  }

  /// Takes the redrawn line away.
  void clear();

  /// Whether the line is redrawn, so that a person watches.
  bool watched() const { return bool(show_); }

  struct evaluation {
    metric_values metrics;
    std::uint64_t version = 0, records = 0;
  };

  double loss() const { return loss_; }                            ///< the last one; 0: none
  evaluation const& last_evaluation() const { return last_; }      ///< of no records: there was none
  double seconds(time_point now) const;                            ///< since the first look
  std::uint64_t records_before() const { return first_records_; }  ///< that were done before

 private:
  job const& job_;
  logger log_;
  cli::status_sink show_;
  time_point shown_{}, since_{}, first_{};
  std::uint64_t records_ = 0, first_records_ = 0;  // at `since_`, before this process had anything done
  double rate_ = 0;                                // records a second, smoothed
  double loss_ = 0;
  bool begun_ = false;  // something was leased, or done
  evaluation last_;
};

/// "tasks 24/236, records 12288/120000, 1873 records/s, loss 0.113, version 192, 0:57 left"
std::string describe(master::job_progress const& p, double records_per_second);

/// The same for a terminal, by its width: "epoch 1/2  10 %  1873 records/s  loss 0.113  accuracy 0.97  0:57
/// left". As long as nobody can tell the time it is `--:--`.
cli::status_line status_of(job const& j, progress_numbers const& n);

/// What is left of it at the end: "version 192, loss 0.113". Without a loss where nobody told of one.
std::string outcome(master::job_progress const& p);

/// Seconds as `0:57`, `12:03` or `1:02:03`.
std::string clock_text(double seconds);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/progress.ipp"
#endif
